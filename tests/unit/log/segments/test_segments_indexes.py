"""The three indexes of a segment, each against a plain scan of what was put in."""

import pytest

from headrace.errors import DiskFull
from headrace.log.files.disk import File
from headrace.log.segments.offset_index import OffsetIndex
from headrace.log.segments.time_index import TimeIndex, TimestampOffset
from headrace.log.segments.txn_index import AbortedTxn, TxnIndex
from headrace.testing.memory_disk import MemoryDisk

BASE = 1000


@pytest.fixture
def disk() -> MemoryDisk:
    return MemoryDisk()


@pytest.fixture
def file(disk: MemoryDisk) -> File:
    return disk.create("/a.index")


# ---- offset index

ENTRIES = [(1010, 100), (1020, 250), (1035, 900), (1036, 1000)]


def offset_index(file: File, max_bytes: int = 80, *, flush_after: int = 0) -> OffsetIndex:
    index = OffsetIndex(file, BASE, max_bytes)
    for number, entry in enumerate(ENTRIES, 1):
        index.append(*entry)
        if number == flush_after:
            index.flush()
    return index


@pytest.mark.parametrize("flush_after", [0, 2, 4])
def test_position_is_that_of_the_greatest_entry_at_or_below(file: File, flush_after: int) -> None:
    index = offset_index(file, flush_after=flush_after)
    for offset in range(BASE, 1040):
        expected = max((p for last, p in ENTRIES if last <= offset), default=0)
        assert index.position_for(offset) == expected
    for position in range(1100):
        expected = max((p for _, p in ENTRIES if p <= position), default=0)
        assert index.position_before(position) == expected


def test_offset_index_bytes_are_kafkas(file: File) -> None:
    index = offset_index(file)
    assert file.size == 0, "entries stay in memory until they are flushed"
    index.flush()
    index.flush()
    assert file.read(0, 16).hex() == "0000000a0000006400000014000000fa"
    assert file.size == 32
    assert (index.entries, index.last_position) == (4, 1000)
    assert OffsetIndex(file, BASE, 80).position_for(1034) == 250


def test_offset_index_is_full_by_bytes(file: File) -> None:
    index = OffsetIndex(file, BASE, 17)
    assert index.free_entries > 0
    index.append(1001, 10)
    assert index.free_entries > 0
    index.append(1002, 20)
    assert index.free_entries <= 0


@pytest.mark.parametrize("flush_after", [0, 2, 4])
@pytest.mark.parametrize(
    ("offset", "position", "left"), [(1020, 9999, 1), (1021, 9999, 2), (2000, 250, 1), (0, 0, 0)]
)
def test_offset_index_truncation(
    file: File, flush_after: int, offset: int, position: int, left: int
) -> None:
    index = offset_index(file, flush_after=flush_after)
    index.truncate(offset, position)
    assert index.entries == left
    assert index.last_position == (ENTRIES[left - 1][1] if left else 0)
    index.append(1500, 5000)
    assert index.position_for(1500) == 5000


def test_offset_index_clear_and_torn_size(file: File) -> None:
    index = offset_index(file, flush_after=2)
    index.clear()
    assert (index.entries, file.size, index.last_position) == (0, 0, 0)
    assert index.has_whole_entries
    file.append(b"123")
    assert not index.has_whole_entries


# ---- time index

TIMES = [TimestampOffset(50, 1005), TimestampOffset(70, 1010), TimestampOffset(90, 1030)]


def time_index(file: File, *, flush_after: int = 0) -> TimeIndex:
    index = TimeIndex(file, BASE, 120)
    for number, entry in enumerate(TIMES, 1):
        index.append_if_later(*entry)
        if number == flush_after:
            index.flush()
    return index


@pytest.mark.parametrize("flush_after", [0, 1, 3])
def test_time_lookup_starts_at_or_before_the_first_that_reaches_it(
    file: File, flush_after: int
) -> None:
    index = time_index(file, flush_after=flush_after)
    for timestamp in range(100):
        expected = max((e.offset for e in TIMES if e.timestamp < timestamp), default=BASE)
        assert index.offset_for(timestamp) == expected


def test_time_index_takes_only_new_maxima(file: File) -> None:
    index = TimeIndex(file, BASE, 120)
    assert index.last == TimestampOffset(-1, BASE)
    index.append_if_later(-1, 1001)
    assert index.entries == 0
    index.append_if_later(50, 1002)
    index.append_if_later(50, 1003)
    index.append_if_later(49, 1004)
    assert (index.entries, index.last) == (1, TimestampOffset(50, 1002))
    index.flush()
    assert file.read(0, 99).hex() == "000000000000003200000002"
    assert TimeIndex(file, BASE, 120).last == TimestampOffset(50, 1002)


def test_time_index_keeps_room_for_the_last_entry(file: File) -> None:
    index = TimeIndex(file, BASE, 36)
    index.append_if_later(1, 1001)
    assert index.free_entries > 0
    index.append_if_later(2, 1002)
    assert index.free_entries <= 0


@pytest.mark.parametrize("flush_after", [0, 1, 3])
@pytest.mark.parametrize(("offset", "left"), [(1005, 0), (1010, 1), (1011, 2), (5000, 3)])
def test_time_index_truncation(file: File, flush_after: int, offset: int, left: int) -> None:
    index = time_index(file, flush_after=flush_after)
    index.truncate(offset)
    assert index.entries == left
    assert index.last == (TIMES[left - 1] if left else TimestampOffset(-1, BASE))
    index.append_if_later(1000, 1900)
    assert index.last == TimestampOffset(1000, 1900)
    index.clear()
    assert index.last == TimestampOffset(-1, BASE)


# ---- transaction index

ABORTED = [AbortedTxn(7, 10, 20, 15), AbortedTxn(8, 15, 30, 31)]


def txn_index(disk: MemoryDisk) -> TxnIndex:
    index = TxnIndex(disk, "/a.txnindex", None)
    for aborted in ABORTED:
        index.append(aborted)
    return index


def test_txn_index_has_a_file_only_if_something_was_aborted(disk: MemoryDisk) -> None:
    index = TxnIndex(disk, "/a.txnindex", None)
    assert list(index) == []
    index.truncate(0)
    index.flush()
    assert index.file is None
    assert not disk.exists("/a.txnindex")


def test_txn_index_bytes_are_kafkas(disk: MemoryDisk) -> None:
    assert list(txn_index(disk)) == ABORTED
    content = disk.read_bytes("/a.txnindex") or b""
    assert content[:34].hex() == (
        "00000000000000000007000000000000000a0000000000000014000000000000000f"
    )
    assert list(TxnIndex(disk, "/a.txnindex", len(content))) == ABORTED


def test_txn_index_ignores_a_torn_tail(disk: MemoryDisk) -> None:
    index = txn_index(disk)
    assert index.file is not None
    index.file.append(b"torn")
    assert list(index) == ABORTED


@pytest.mark.parametrize(("offset", "left"), [(0, 0), (20, 0), (21, 1), (30, 1), (31, 2)])
def test_txn_index_truncation(disk: MemoryDisk, offset: int, left: int) -> None:
    index = txn_index(disk)
    index.truncate(offset)
    assert list(index) == ABORTED[:left]


def test_txn_index_keeps_an_entry_that_the_disk_has_no_space_for(disk: MemoryDisk) -> None:
    """Its marker already stands in the log; without the entry, readers would take aborted records for good."""
    disk.capacity_bytes = 40
    index = txn_index(disk)
    assert list(index) == ABORTED
    assert disk.used_bytes == 34
    with pytest.raises(DiskFull):
        index.flush()
    disk.capacity_bytes = None
    index.flush()
    assert list(index) == ABORTED
    assert disk.used_bytes == 68
    disk.capacity_bytes = 68
    index.append(AbortedTxn(9, 40, 50, 40))
    index.truncate(25)
    assert list(index) == ABORTED[:1]
