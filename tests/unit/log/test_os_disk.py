"""What only the disk of the operating system does."""

import errno
import os
from pathlib import Path

import pytest

from headrace.log.os_disk import OsDisk


def test_what_need_not_be_durable_is_written_over_in_place(tmp_path: Path) -> None:
    """Unless that would take two steps, between which a kill could fall."""
    disk, path = OsDisk(), tmp_path / "small"
    disk.replace(str(path), b"first\n", durable=False)
    inode = path.stat().st_ino
    disk.replace(str(path), b"second\n", durable=False)
    assert (path.read_bytes(), path.stat().st_ino) == (b"second\n", inode)
    disk.replace(str(path), b"3\n", durable=False)
    assert path.read_bytes() == b"3\n"
    large = b"x" * 5000
    for content in (large, large + b"y"):
        inode = path.stat().st_ino
        disk.replace(str(path), content, durable=False)
        assert path.read_bytes() == content
        assert path.stat().st_ino != inode
    assert [each.name for each in tmp_path.iterdir()] == ["small"]


def test_a_file_on_a_disk_that_fails_can_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room that was taken ahead is not worth an error: whoever closes has noticed."""
    disk = OsDisk()
    file = disk.create(str(tmp_path / "growing"))
    for _ in range(2):
        file.append(bytes(1 << 20))

    def fail(_descriptor: int, _size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "ftruncate", fail)
    file.close()


def test_pieces_that_the_system_takes_in_part_are_written_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = OsDisk(), tmp_path / "pieces"
    file = disk.create(str(path))
    file.append(b"first ")
    monkeypatch.setattr(
        os, "pwritev", lambda descriptor, pieces, at: os.pwrite(descriptor, pieces[0][:3], at)
    )
    file.append_all([b"second ", bytearray(b"third "), memoryview(b"fourth")])
    assert (path.read_bytes(), file.size) == (b"first second third fourth", 25)


def test_more_pieces_than_one_call_takes(tmp_path: Path) -> None:
    disk, path = OsDisk(), tmp_path / "pieces"
    file = disk.create(str(path))
    pieces = [b"%d," % number for number in range(5000)]
    file.append_all(pieces)
    assert path.read_bytes() == b"".join(pieces)
    assert file.size == path.stat().st_size
