"""Interface to the file system, as logs use it.

`os_disk` implements it with real files, `headrace.testing` in memory, where unsynced bytes are lost in a crash. Paths are plain strings. Every
refusal of the operating system surfaces as `DiskFailed` (`DiskFull` for a lack of space), with the path in its text.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol


class FileStat(NamedTuple):
    """A file in a directory."""

    name: str
    size: int
    modified_ms: int


class DiskUsage(NamedTuple):
    """Total and free space on the volume of a directory."""

    total_bytes: int
    usable_bytes: int


class File(Protocol):
    """One file. Its descriptor may be closed and opened again between calls."""

    @property
    def path(self) -> str:
        """Where the file is."""

    @property
    def size(self) -> int:
        """Bytes written so far."""

    @property
    def modified_ms(self) -> int:
        """When the file was written to last, in milliseconds since 1970: asked of the file system each time."""

    def append(self, *pieces: bytes | bytearray | memoryview) -> None:
        """Write the pieces at the end, one behind the other, all or nothing: after DiskFull the file has its old size."""

    def read(self, position: int, length: int) -> bytes:
        """A copy of up to `length` bytes."""

    def view(self, position: int, length: int) -> bytes | memoryview:
        """The same bytes for a socket, without a copy where that is cheaper. All of them could be read just now.

        Only the kernel may touch a memoryview: a page that was evicted and cannot be read again, or lies behind a later
        `truncate`, fails a `send` but ends a process that looks at it. Who needs the bytes themselves calls `read`.
        """

    def truncate(self, size: int) -> None:
        """Truncate the file, and free space that was reserved behind its end."""

    def syncer(self) -> Callable[[], None]:
        """A function, to be called once, that makes what was written so far durable; it may run in another thread.

        After it has failed, the file must not be trusted again.
        """

    def renamed(self, path: str) -> None:
        """Tell the file that it has a new name."""

    def close(self) -> None:
        """Give back the descriptor; a later call opens the file again."""


class Disk(Protocol):
    """A file system, as far as a log needs one."""

    def open(self, path: str, size: int | None = None) -> File:
        """A file that is there; `size` if the caller knows it already."""

    def create(self, path: str) -> File:
        """Create an empty file. An existing file of that name is replaced."""

    def list_files(self, directory: str) -> list[FileStat]:
        """Plain files of a directory."""

    def list_directories(self, directory: str) -> list[str]:
        """Names of sub-directories."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""

    def read_bytes(self, path: str) -> bytes | None:
        """A small file whole, or None if it is not there."""

    def replace(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Put a small file in place at once: written aside, synced if `durable`, renamed."""

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory; an existing target file is replaced."""

    def set_modified(self, path: str, modified_ms: int) -> None:
        """Set the modification time of a file."""

    def remove(self, path: str) -> None:
        """Remove a file if it is there."""

    def remove_tree(self, directory: str) -> None:
        """Remove a directory and all in it."""

    def make_directory(self, directory: str) -> None:
        """Create a directory with its parents if missing."""

    def sync_directory(self, directory: str) -> None:
        """Make creations, renames and removals in it durable."""

    def volume_syncer(self, directory: str) -> Callable[[], None] | None:
        """A function, to be called once, that makes all that was written below durable, or None if there is no such.

        Get it before the writing: it tells of failures since then. It raises DiskFailed.
        """

    def usage(self, directory: str) -> DiskUsage:
        """The room on the volume that holds a directory."""

    def lock(self, path: str) -> Callable[[], None]:
        """Take a lock file for this process; returns the release. DiskFailed if another process holds it."""
