"""A small disk that can get bad sectors: ext4 on a loop device, which only root may set up.

`fail` makes the device shorter: the sectors behind its new end are still named by the file system, and reading or writing
them is an I/O error, as with sectors that a disk has lost.
"""

import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.tools import require_all

_BLOCK_BYTES = 4096
_FIBMAP = 1  # ioctl: the number of a file's block on its disk


class BadDisk:
    """Mounted at `path` until `unmount`."""

    def __init__(self, image: Path, path: Path, *, size_bytes: int) -> None:
        self.path = path
        self._image = image
        self._size_bytes = size_bytes
        self._device = ""
        self._is_mounted = False
        path.mkdir(parents=True, exist_ok=True)

    def replace(self) -> None:
        """Mount a new, empty disk, in the place of the one that is mounted now, if one is."""
        self.unmount()
        self._image.unlink(missing_ok=True)
        with self._image.open("wb") as image:
            image.truncate(self._size_bytes)
        # Without a journal: it would be the first to fail, and take the whole file system along.
        features = ["-O", "^has_journal", "-E", "lazy_itable_init=0"]
        _run("mkfs.ext4", "-q", "-F", "-b", str(_BLOCK_BYTES), *features, str(self._image))
        self._device = _run("losetup", "--find", "--show", str(self._image)).strip()
        _run("mount", self._device, str(self.path))
        self._is_mounted = True

    def fail(self, *files: Path) -> None:
        """Lose every sector from the first one of these files on, and what the machine remembers of them."""
        os.sync()
        first = min(_first_block(file) for file in files)
        with self._image.open("r+b") as image:
            image.truncate(first * _BLOCK_BYTES)
        _run("losetup", "--set-capacity", self._device)
        for file in files:
            with file.open("rb") as opened:
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def unmount(self) -> None:
        """Give mount and device back."""
        if self._is_mounted:
            # Lazily: a broker that a failed test left behind must not keep the mount for ever.
            _run("umount", "--lazy", str(self.path))
            self._is_mounted = False
        if self._device:
            _run("losetup", "--detach", self._device)
            self._device = ""


@contextmanager
def bad_disk(directory: Path, *, size_bytes: int = 128 * 1024 * 1024) -> Iterator[BadDisk]:
    """A disk at `directory`/disk. Skips the test where that is not allowed, which is a failure for root in CI."""
    if os.geteuid() != 0:
        pytest.skip("only root can set up the disk that fails in this test")
    disk = BadDisk(directory / "image", directory / "disk", size_bytes=size_bytes)
    try:
        try:
            disk.replace()
        except (OSError, subprocess.CalledProcessError) as error:
            said = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
            reason = f"no disk on a loop device can be set up here: {said}"
            if require_all():
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)
        yield disk
    finally:
        disk.unmount()


def _first_block(file: Path) -> int:
    with file.open("rb") as opened:
        count = -(-file.stat().st_size // _BLOCK_BYTES)
        answers = [
            fcntl.ioctl(opened.fileno(), _FIBMAP, struct.pack("i", index)) for index in range(count)
        ]
    numbers = [int.from_bytes(answer, sys.byteorder) for answer in answers]
    return min(number for number in numbers if number > 0)


def _run(*command: str) -> str:
    # Not every user has the directories of the system's own programs in their PATH.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PATH": path}
    ).stdout
