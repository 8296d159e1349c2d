import pytest

from headrace.errors import DiskFull
from headrace.log.compaction.log_compaction import assess
from headrace.log.log_config import LogConfig
from headrace.log.retention import Reason, SegmentFacts, deletable, delete_old_segments
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal
from tests.support.log_samples import NOW_MS, append, make_batch, open_sample

AGE, SIZE, LOG_START = Reason.AGE, Reason.SIZE, Reason.LOG_START
FOREVER = LogConfig(retention_ms=-1)


def facts(*sizes: int, newest_ms: tuple[int, ...] | None = None) -> list[SegmentFacts]:
    """Segments of ten offsets each; the last one is active."""
    newest = newest_ms or (NOW_MS,) * len(sizes)
    return [
        SegmentFacts(10 * number, 10 * number + 10, size, newest[number], number == len(sizes) - 1)
        for number, size in enumerate(sizes)
    ]


def reasons(
    segments: list[SegmentFacts],
    config: LogConfig,
    *,
    log_start_offset: int = 0,
    high_watermark: int = 1000,
    now_ms: int = NOW_MS,
) -> list[Reason]:
    return deletable(
        segments,
        config,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        now_ms=now_ms,
    )


@pytest.mark.parametrize(
    ("retention_bytes", "gone"),
    [(400, 0), (399, 0), (301, 0), (300, 1), (101, 2), (100, 3), (-1, 0)],
)
def test_by_size_only_whole_segments_of_excess_go(retention_bytes: int, gone: int) -> None:
    config = LogConfig(retention_ms=-1, retention_bytes=retention_bytes)
    assert reasons(facts(100, 100, 100, 100), config) == [SIZE] * gone


def test_by_size_the_active_segment_goes_only_if_nothing_may_stay() -> None:
    assert reasons(facts(100, 100), LogConfig(retention_ms=-1, retention_bytes=1)) == [SIZE]
    assert reasons(facts(100, 100), LogConfig(retention_ms=-1, retention_bytes=0)) == [SIZE, SIZE]


def test_by_age_segments_go_until_the_first_young_one() -> None:
    config = LogConfig(retention_ms=1000)
    old, young = NOW_MS - 1001, NOW_MS - 1000
    assert reasons(facts(1, 1, 1, newest_ms=(old, young, old)), config) == [AGE]
    assert reasons(facts(1, 1, 1, newest_ms=(old, old, old)), config) == [AGE] * 3
    assert reasons(facts(1, 1, 1, newest_ms=(young, old, old)), config) == []


def test_an_empty_active_segment_stays() -> None:
    config = LogConfig(retention_ms=0)
    assert reasons(facts(1, 0, newest_ms=(0, 0)), config) == [AGE]


def test_what_is_not_replicated_stays() -> None:
    config = LogConfig(retention_ms=0)
    segments = facts(1, 1, 1, newest_ms=(0, 0, 0))
    assert reasons(segments, config, high_watermark=20) == [AGE, AGE]
    assert reasons(segments, config, high_watermark=19) == [AGE]
    assert reasons(segments, config, high_watermark=0) == []


def test_by_log_start_the_active_segment_stays() -> None:
    segments = facts(1, 1, 1)
    assert reasons(segments, FOREVER, log_start_offset=9) == []
    assert reasons(segments, FOREVER, log_start_offset=20) == [LOG_START] * 2
    assert reasons(segments, FOREVER, log_start_offset=30) == [LOG_START] * 2


def test_a_compacted_topic_loses_segments_by_its_log_start_alone() -> None:
    config = LogConfig(
        cleanup_delete=False, cleanup_compact=True, retention_ms=0, retention_bytes=0
    )
    segments = facts(1, 1, 1, newest_ms=(0, 0, 0))
    assert reasons(segments, config) == []
    assert reasons(segments, config, log_start_offset=10) == [LOG_START]


def test_reasons_mix() -> None:
    config = LogConfig(retention_ms=1000, retention_bytes=100)
    segments = facts(100, 100, 100, 100, newest_ms=(NOW_MS, 0, NOW_MS, NOW_MS))
    assert reasons(segments, config, log_start_offset=10) == [LOG_START, AGE, SIZE]


def test_retention_is_carried_out() -> None:
    config = LogConfig(retention_ms=1000, segment_ms=100)
    log = open_sample(MemoryDisk(), config)
    for number in range(5):
        append(log, make_batch(timestamp=NOW_MS + 200 * number))
    assert len(log.segments) == 5
    gone = delete_old_segments(log, high_watermark=2, now_ms=NOW_MS + 10_000)
    assert [(segment.base_offset, reason) for segment, reason in gone] == [(0, AGE), (1, AGE)]
    assert log.log_start_offset == 2
    assert delete_old_segments(log, high_watermark=2, now_ms=NOW_MS + 10_000) == []
    delete_old_segments(log, high_watermark=5, now_ms=NOW_MS + 10_000)
    assert (log.log_start_offset, log.log_end_offset, len(log.segments)) == (5, 5, 1)


def test_records_without_time_are_as_old_as_the_last_change_of_their_file() -> None:
    disk = MemoryDisk()
    log = open_sample(disk, LogConfig(retention_ms=4000))
    for step in range(62):
        disk.now_ms = NOW_MS + 1000 * step
        append(log, make_batch(timestamp=-1), now_ms=disk.now_ms)
        assert delete_old_segments(log, high_watermark=step + 1, now_ms=disk.now_ms + 250) == []
    assert delete_old_segments(log, high_watermark=62, now_ms=disk.now_ms + 4000) == []
    assert len(delete_old_segments(log, high_watermark=62, now_ms=disk.now_ms + 4001)) == 1


def test_one_record_with_a_time_tells_the_age_of_a_segment() -> None:
    disk = MemoryDisk()
    disk.now_ms = NOW_MS
    log = open_sample(disk, LogConfig(retention_ms=1000))
    append(log, make_batch(timestamp=NOW_MS - 5000))
    append(log, make_batch(timestamp=-1))
    assert len(delete_old_segments(log, high_watermark=2, now_ms=NOW_MS)) == 1


def test_segments_without_times_are_compacted_when_their_file_is_old_enough() -> None:
    disk = MemoryDisk()
    config = LogConfig(cleanup_compact=True, min_compaction_lag_ms=1000)
    log = open_sample(disk, config)
    disk.now_ms = NOW_MS + 500
    append(log, make_batch(timestamp=-1), now_ms=disk.now_ms)
    log.roll(disk.now_ms)
    for later_ms, end_offset in ((1499, 0), (1500, 1)):
        state = assess(log, last_stable_offset=1, now_ms=NOW_MS + later_ms)
        assert state.end_offset == end_offset


def test_without_room_to_roll_the_active_segment_the_log_starts_behind_the_segments_that_went() -> (
    None
):
    disk = MemoryDisk()
    log = open_sample(disk, LogConfig(segment_bytes=len(make_batch()), retention_ms=1000))
    for _ in range(10):
        append(log, make_batch())
    disk.capacity_bytes = disk.used_bytes
    with pytest.raises(DiskFull):
        delete_old_segments(log, high_watermark=10, now_ms=NOW_MS + 10**9)
    assert [segment.base_offset for segment in log.segments] == [9]
    assert log.log_start_offset == 9
    refused = log.read(0, 1000, 10)
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
