"""`incarnations`: the last processes that held the lock on a log directory, by the ids under which they registered.

A broker that holds the lock knows that these processes have ended, so that it need not wait for the end of their sessions.
"""

from typing import Final

from headrace.log.files.disk import Disk

INCARNATIONS_FILE: Final = "incarnations"
# More than one, because a process may end after it wrote its own id and before it registered.
_KEPT: Final = 8


def read_incarnations(disk: Disk, directory: str) -> list[str]:
    """The processes before this one, the oldest first."""
    content = disk.read_bytes(f"{directory}/{INCARNATIONS_FILE}") or b""
    return content.decode(errors="replace").split()


def add_incarnation(disk: Disk, directory: str, incarnation: str) -> None:
    """From now on this process holds the directory. DiskFailed if that cannot be written."""
    kept = [*read_incarnations(disk, directory), incarnation][-_KEPT:]
    disk.replace(f"{directory}/{INCARNATIONS_FILE}", "".join(f"{each}\n" for each in kept).encode())
