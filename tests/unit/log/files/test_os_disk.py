"""What only the disk of the operating system does."""

import errno
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.errors import DiskFailed, DiskFull
from headrace.log.files.os_disk import OsDisk, OsFile
from headrace.log.log_config import LogConfig
from headrace.log.segments.offset_index import OffsetIndex
from headrace.log.segments.time_index import TimeIndex
from headrace.records.batch_view import read_header
from tests.support.log_samples import NOW_MS, append, make_batch, open_sample, stored_batches

MIB = 1 << 20


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
    file.append(b"second ", bytearray(b"third "), memoryview(b"fourth"))
    assert (path.read_bytes(), file.size) == (b"first second third fourth", 25)


def test_more_pieces_than_one_call_takes(tmp_path: Path) -> None:
    disk, path = OsDisk(), tmp_path / "pieces"
    file = disk.create(str(path))
    pieces = [b"%d," % number for number in range(5000)]
    file.append(*pieces)
    assert path.read_bytes() == b"".join(pieces)
    assert file.size == path.stat().st_size


# ---- bytes that cannot be read: a file that lost its end answers a touch of a mapped page as a bad sector does


@pytest.fixture
def mapped(tmp_path: Path) -> OsFile:
    file = OsDisk().create(str(tmp_path / "mapped"))
    file.append(bytes(range(256)) * 4096)
    assert bytes(file.view(0, MIB)) == bytes(range(256)) * 4096
    return file


def test_a_view_of_bytes_that_cannot_be_read_is_refused(mapped: OsFile) -> None:
    os.truncate(mapped.path, 4096)
    for position, length in ((0, MIB), (MIB // 2, MIB // 2), (5000, 100), (0, 4097)):
        with pytest.raises(DiskFailed, match="mapped"):
            mapped.view(position, length)
        with pytest.raises(DiskFailed, match="mapped"):
            mapped.read(position, length)
    assert bytes(mapped.view(0, 4096)) == bytes(range(256)) * 16


def test_what_python_looks_at_is_never_a_mapped_page(mapped: OsFile) -> None:
    assert type(mapped.view(0, 64 * 1024)) is bytes
    index, times = OffsetIndex(mapped, 0, MIB), TimeIndex(mapped, 0, MIB)
    os.truncate(mapped.path, 4096)
    with pytest.raises(DiskFailed):
        index.position_for(1 << 31)
    with pytest.raises(DiskFailed):
        times.offset_for(1 << 62)


def test_a_kernel_that_cannot_check_a_mapping_is_not_given_any(
    mapped: OsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    class OldKernel(mmap.mmap):
        def madvise(self, option: int, *_: int) -> None:
            asked.append(option)
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(mmap, "mmap", OldKernel)
    mapped.close()
    for _ in range(2):
        assert mapped.view(0, MIB) == bytes(range(256)) * 4096
        assert type(mapped.view(0, MIB)) is bytes
    assert len(asked) == 1


def failing_close(descriptor: int, close: Callable[[int], None] = os.close) -> None:
    """As on a network file system: the descriptor is gone, and so may be what was written through it."""
    close(descriptor)
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_close_that_fails_raises_nothing_and_no_later_sync_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = OsDisk()
    file = disk.create(str(tmp_path / "file"))
    file.append(b"content")
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", failing_close)
        file.close()
    assert "file: closing it failed: Input/output error" in caplog.text
    assert file.read(0, 7) == b"content"
    with pytest.raises(DiskFailed, match="an earlier close failed"):
        file.syncer()()
    file.close()


def test_a_sync_whose_close_fails_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = OsDisk()
    file = disk.create(str(tmp_path / "file"))
    file.append(b"content")
    sync = file.syncer()
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", failing_close)
        with pytest.raises(DiskFailed):
            sync()
    file.close()


def test_a_lock_is_released_though_its_close_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = OsDisk(), str(tmp_path / ".lock")
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", failing_close)
        disk.lock(path)()
    disk.lock(path)()


def test_a_small_file_whose_close_fails_is_not_taken_for_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, path = OsDisk(), str(tmp_path / "small")
    disk.replace(path, b"first\n", durable=False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "close", failing_close)
        with pytest.raises(DiskFailed):
            disk.replace(path, b"second\n", durable=False)


def refuse_descriptors(*_: object, **__: object) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_without_a_free_descriptor_a_file_is_refused_and_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = OsDisk()
    file = disk.create(str(tmp_path / "file"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse_descriptors)
        for attempt in (
            lambda: file.append(b"content"),
            file.syncer,
            lambda: disk.replace(str(tmp_path / "other"), b"content"),
            lambda: disk.sync_directory(str(tmp_path)),
        ):
            with pytest.raises(DiskFull, match="Too many open files"):
                attempt()
    file.append(b"content")
    assert file.read(0, 7) == b"content"
    file.close()


class OneRefused:
    """`os.open` and `os.dup`, of which the n-th call finds no free descriptor."""

    def __init__(self, number: int) -> None:
        self._left = number
        self._open, self._dup = os.open, os.dup

    @property
    def has_refused(self) -> bool:
        return self._left <= 0

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        self._count()
        return self._open(path, flags, mode)

    def dup(self, descriptor: int) -> int:
        self._count()
        return self._dup(descriptor)

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            refuse_descriptors()


def test_a_log_refuses_what_it_has_no_descriptors_for_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first append behind an opening needs several: whichever is refused, no offset is given twice."""
    config = LogConfig(flush_messages=1, index_interval_bytes=50)
    for number in range(1, 20):
        disk, directory = OsDisk(), str(tmp_path / f"t-{number}")
        log = open_sample(disk, config, directory=directory)
        for _ in range(4):
            append(log, make_batch())
        log.close(NOW_MS)
        log = open_sample(disk, config, directory=directory, clean=True)
        before, calls = descriptors(), OneRefused(number)
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", calls.open)
            patch.setattr(os, "dup", calls.dup)
            with suppress(DiskFull):
                log.append_as_leader([make_batch()], leader_epoch=1, now_ms=NOW_MS)
        append(log, make_batch(), leader_epoch=1)
        offsets = [read_header(batch).base_offset for batch in stored_batches(log)]
        assert offsets == list(range(log.log_end_offset))
        assert log.recovery_point == log.log_end_offset
        log.abandon()
        assert descriptors() <= before
        if not calls.has_refused:
            return
    pytest.fail("it takes more descriptors than that")
