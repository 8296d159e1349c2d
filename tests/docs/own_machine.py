"""Runs a command as if it had the machine to itself: its own ports, processes and /tmp. A program, for Linux.

    python own_machine.py DIRECTORY COMMAND …

So that pages can name the ports that people know, whatever else runs here, and nothing is left when they are done. DIRECTORY is the
command's working directory, and must not be under /tmp, because `DIRECTORY/tmp` becomes /tmp. Where the kernel does not allow any of
this, it ends with 77 before the command was started.
"""

import ctypes
import os
import signal
import socket
import struct
import sys
from fcntl import ioctl
from pathlib import Path

NOT_ALLOWED = 77

_NEW_MOUNTS, _NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x20000, 0x10000000, 0x20000000, 0x40000000
_BIND, _BIND_ALL, _PRIVATE_ALL_THE_WAY = 0x1000, 0x5000, 0x44000
_DIE_WITH_PARENT = 1
_GET_FLAGS, _SET_FLAGS, _IS_UP = 0x8913, 0x8914, 0x1

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Become the first process of the new machine."""
    directory, command = Path(sys.argv[1]).resolve(), sys.argv[2:]
    try:
        _unshare()
    except OSError as error:
        sys.stderr.write(f"own_machine: {error}\n")
        return NOT_ALLOWED
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    try:
        _furnish(directory)
    except OSError as error:
        sys.stderr.write(f"own_machine: {error}\n")
        os._exit(NOT_ALLOWED)
    # One more: the first process of a machine does not get signals that it does not expect.
    worker = os.fork()
    if worker == 0:
        os.chdir(directory)
        os.execvp(command[0], command)
    while True:
        pid, status = os.wait()
        if pid == worker:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _unshare() -> None:
    user, group = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEW_USER | _NEW_MOUNTS | _NEW_NETWORK | _NEW_PROCESSES))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _furnish(directory: Path) -> None:
    _mount(b"none", b"/", None, _PRIVATE_ALL_THE_WAY)
    _mount(b"proc", b"/proc", b"proc", 0)
    own = directory / "tmp"
    own.mkdir(exist_ok=True)
    for needed in {Path(__file__).resolve().parents[2], Path(sys.prefix).resolve()}:
        if needed.is_relative_to("/tmp"):  # would be hidden by ours
            place = own / needed.relative_to("/tmp")
            place.mkdir(parents=True, exist_ok=True)
            _mount(os.fsencode(needed), os.fsencode(place), None, _BIND)
    _mount(os.fsencode(own), b"/tmp", None, _BIND_ALL)
    with socket.socket() as any_socket:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", ioctl(any_socket, _GET_FLAGS, request))[1]
        ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _IS_UP))


def _mount(source: bytes, target: bytes, kind: bytes | None, flags: int) -> None:
    _check(_libc.mount(source, target, kind, flags, None))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    sys.exit(main())
