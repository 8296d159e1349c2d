import pytest

from headrace.errors import CorruptBatch, DiskFailed
from headrace.log.log_config import LogConfig
from headrace.log.segments.segment import Segment, SegmentSizes, offset_name
from headrace.log.segments.time_index import TimestampOffset
from headrace.records.batch_view import BatchHeader, read_header, stamp
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import NOW_MS, make_batch

BASE = 100
PATH = f"/d/{offset_name(BASE)}"
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=150, segment_ms=1000)


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/d")
    return disk


@pytest.fixture
def segment(disk: MemoryDisk) -> Segment:
    return Segment.create(disk, PATH, BASE, CONFIG, now_ms=NOW_MS)


def put(segment: Segment, offset: int, count: int = 2, *, timestamp: int = NOW_MS) -> int:
    """Append a batch; returns its size."""
    batch = make_batch(count, timestamp=timestamp)
    stamp(batch, 0, offset, 0)
    segment.append([batch], [read_header(batch)])
    return len(batch)


def fill(segment: Segment, batches: int = 6) -> int:
    for number in range(batches):
        size = put(segment, BASE + 2 * number, timestamp=NOW_MS + 10 * number)
    return size


def rolls(segment: Segment, header: BatchHeader, now_ms: int) -> bool:
    return segment.should_roll(header.last_offset, header.size, header.max_timestamp, now_ms)


def test_names_and_files(disk: MemoryDisk, segment: Segment) -> None:
    assert offset_name(42) == "00000000000000000042"
    names = {stat.name for stat in disk.list_files("/d")}
    assert names == {offset_name(BASE) + suffix for suffix in (".log", ".index", ".timeindex")}
    assert [file.path for file in segment.files()] == [
        PATH + suffix for suffix in (".log", ".index", ".timeindex")
    ]


def test_batches_are_found_by_offset(segment: Segment) -> None:
    size = fill(segment)
    assert segment.offset_index.entries == 2
    for offset in range(BASE, BASE + 12):
        assert segment.position_of(offset) == (offset - BASE) // 2 * size
    assert segment.position_of(BASE - 50) == 0
    assert segment.position_of(BASE + 12) is None


def test_a_gap_leads_to_the_next_batch(segment: Segment) -> None:
    size = put(segment, BASE)
    put(segment, BASE + 50)
    assert segment.position_of(BASE + 2) == size
    assert segment.position_of(BASE + 52) is None


def test_an_index_entry_names_the_last_offset_of_the_first_batch_past_the_interval(
    segment: Segment,
) -> None:
    size = fill(segment)
    assert size < 150 < 2 * size
    segment.write_indexes()
    content = segment.offset_index.file.read(0, 99)
    pairs = [
        (
            int.from_bytes(content[at : at + 4], "big"),
            int.from_bytes(content[at + 4 : at + 8], "big"),
        )
        for at in range(0, len(content), 8)
    ]
    assert pairs == [(5, 2 * size), (9, 4 * size)]


def test_a_read_takes_whole_batches_up_to_the_limit_but_at_least_one(segment: Segment) -> None:
    size = fill(segment)
    end = 6 * size
    for first in range(6):
        for max_bytes in range(0, end + 50, 13):
            taken = min(max(1, max_bytes // size), 6 - first)
            found = segment.read(first * size, max_bytes, end, at_least_one=True)
            assert (found.position, found.length) == (first * size, taken * size)
            hard = segment.read(first * size, max_bytes, end, at_least_one=False)
            assert hard.length == (taken * size if max_bytes >= size else 0)
    assert segment.read(end, 100, end, at_least_one=True).length == 0
    assert segment.read(0, 10_000, 2 * size, at_least_one=True).length == 2 * size
    assert segment.read(2 * size, 10_000, size, at_least_one=True).length == 0


def test_rolling(segment: Segment) -> None:
    def should_roll(offset: int = BASE, timestamp: int = NOW_MS, now_ms: int = NOW_MS) -> bool:
        batch = make_batch(timestamp=timestamp)
        stamp(batch, 0, offset, 0)
        return rolls(segment, read_header(batch), now_ms)

    assert not should_roll(timestamp=NOW_MS + 10**9), "an empty segment takes anything"
    assert should_roll(offset=BASE + 2**31), "but a relative offset must fit 32 bits"
    size = put(segment, BASE)
    assert not should_roll()
    assert should_roll(offset=BASE + 2**31)
    assert not should_roll(timestamp=NOW_MS + 1000)
    assert should_roll(timestamp=NOW_MS + 1001), "the records' time counts"
    assert not should_roll(now_ms=NOW_MS + 5000)
    assert should_roll(timestamp=-1, now_ms=NOW_MS + 5000), "the clock only without one"
    while segment.size + len(make_batch()) <= 1000:
        assert not should_roll()
        size = put(segment, BASE)
    assert segment.size > 1000 - size
    assert should_roll()


def test_rolling_when_an_index_is_full(disk: MemoryDisk) -> None:
    config = LogConfig(index_interval_bytes=1, segment_index_bytes=24)
    segment = Segment.create(disk, PATH, BASE, config, now_ms=NOW_MS)
    header = read_header(make_batch())
    put(segment, BASE)
    assert not rolls(segment, header, NOW_MS)
    put(segment, BASE + 2, timestamp=NOW_MS + 1)
    assert segment.time_index.free_entries <= 0
    assert rolls(segment, header, NOW_MS)


def test_rolling_by_time_after_a_restart_reads_the_first_batch(
    disk: MemoryDisk, segment: Segment
) -> None:
    put(segment, BASE, timestamp=NOW_MS)
    sizes = SegmentSizes(segment.size, 0, 0)
    again = Segment(disk, PATH, BASE, CONFIG, sizes=sizes, created_ms=NOW_MS + 10**6)
    assert again.first_timestamp == NOW_MS
    assert rolls(again, read_header(make_batch(timestamp=NOW_MS + 1001)), NOW_MS)


def test_the_largest_timestamp_is_that_of_the_first_batch_that_reached_it(
    segment: Segment,
) -> None:
    assert segment.max_timestamp == TimestampOffset(-1, BASE)
    for offset, timestamp in ((100, 5), (102, 9), (104, 9), (106, 7)):
        put(segment, offset, timestamp=timestamp)
    assert segment.max_timestamp == TimestampOffset(9, 103)
    segment.seal()
    assert segment.time_index.last == TimestampOffset(9, 103)


def test_a_batch_is_found_by_time(segment: Segment) -> None:
    for offset, timestamp in ((100, 50), (102, 90), (104, 70), (106, 100)):
        put(segment, offset, timestamp=timestamp)

    def found(timestamp: int, from_offset: int = BASE) -> int | None:
        batch = segment.first_batch_reaching(timestamp, from_offset)
        return None if batch is None else batch.header.base_offset

    assert [found(t) for t in (1, 50, 51, 90, 91, 100, 101)] == [100, 100, 102, 102, 106, 106, None]
    assert found(60, from_offset=104) == 104


@pytest.mark.parametrize("keep", range(6))
def test_truncation_forgets_batches_and_what_the_indexes_say_of_them(
    segment: Segment, keep: int
) -> None:
    size = fill(segment)
    segment.truncate(keep * size, BASE + 2 * keep)
    assert segment.size == keep * size
    assert segment.position_of(BASE + 2 * keep) is None
    assert segment.read_next_offset() == BASE + 2 * keep
    newest = NOW_MS + 10 * (keep - 1) if keep else -1
    assert segment.max_timestamp.timestamp == newest
    assert segment.offset_index.last_position < max(1, keep * size)
    put(segment, BASE + 2 * keep, timestamp=NOW_MS + 5)
    assert segment.position_of(BASE + 2 * keep) == keep * size
    assert segment.max_timestamp.timestamp == max(newest, NOW_MS + 5)


def test_batches_that_are_not_whole_are_corrupt(segment: Segment) -> None:
    size = fill(segment, 2)
    segment.log.truncate(2 * size - 1)
    with pytest.raises(CorruptBatch, match=f"no whole batch at {size}"):
        list(segment.batches())
    segment.log.truncate(size + 10)
    with pytest.raises(CorruptBatch, match="10 bytes"):
        list(segment.batches())
    segment.log.truncate(size)
    assert len(list(segment.batches())) == 1


def test_an_index_beyond_the_file_is_corrupt(segment: Segment) -> None:
    size = fill(segment)
    assert segment.read_next_offset() == BASE + 12
    segment.log.truncate(3 * size)
    with pytest.raises(CorruptBatch, match="index"):
        segment.read_next_offset()


def test_a_batch_larger_than_the_scan_window(disk: MemoryDisk) -> None:
    segment = Segment.create(disk, PATH, BASE, LogConfig(), now_ms=NOW_MS)
    for offset in (100, 101, 102):
        batch = make_batch(value=bytes(100_000))
        stamp(batch, 0, offset, 0)
        segment.append([batch], [read_header(batch)])
    assert [found.header.base_offset for found in segment.batches()] == [100, 101, 102]
    assert segment.position_of(102) == 2 * len(batch)


def test_renaming_and_removal(disk: MemoryDisk, segment: Segment) -> None:
    fill(segment, 1)
    segment.rename(add=".deleted")
    assert {stat.name for stat in disk.list_files("/d")} == {
        f"{offset_name(BASE)}{suffix}.deleted" for suffix in (".log", ".index", ".timeindex")
    }
    assert segment.position_of(BASE) == 0, "readers go on"
    segment.rename(remove=".deleted")
    assert disk.exists(PATH + ".log")
    segment.remove()
    assert disk.list_files("/d") == []


def test_a_read_that_goes_on_where_the_last_one_ended_needs_no_search(
    disk: MemoryDisk, segment: Segment
) -> None:
    size = fill(segment)
    read = segment.read(0, 2 * size + 10, segment.size, at_least_one=True)
    assert read.length == 2 * size
    disk.bad_bytes.add((segment.log.path, 2 * size))
    assert segment.position_of(BASE + 4) == 2 * size
    with pytest.raises(DiskFailed):
        segment.position_of(BASE + 5)


def test_where_the_last_read_ended_is_forgotten_by_a_truncation(segment: Segment) -> None:
    size = fill(segment)
    segment.read(0, 2 * size + 10, segment.size, at_least_one=True)
    segment.truncate(size, BASE + 2)
    assert segment.position_of(BASE + 4) is None
    longer = put(segment, BASE + 2, 1)
    put(segment, BASE + 3, 3)
    assert segment.position_of(BASE + 4) == size + longer
