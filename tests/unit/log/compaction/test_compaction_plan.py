from headrace.log.compaction.compaction_plan import (
    SegmentFacts,
    cleanable,
    first_dirty_offset,
    group_segments,
)
from headrace.log.log_config import LogConfig

NOW_MS = 1_000_000
CONFIG = LogConfig(cleanup_compact=True)


def segments(*sizes: int, times: tuple[int, ...] = ()) -> list[SegmentFacts]:
    """Segments of 100 offsets each; the last one is active."""
    times = times or (0,) * len(sizes)
    return [
        SegmentFacts(
            number * 100,
            number * 100 + 100,
            size,
            first_timestamp=time,
            newest_ms=time,
        )
        for number, (size, time) in enumerate(zip(sizes, times, strict=True))
    ]


def test_checkpoint_is_believed_only_inside_the_log() -> None:
    def within(checkpointed: int | None) -> int:
        return first_dirty_offset(checkpointed, log_start_offset=10, log_end_offset=50)

    assert within(None) == 10
    assert within(9) == 10, "the log's start has moved past it"
    assert within(30) == 30
    assert within(50) == 50
    assert within(51) == 10, "the log was cut below it: all may have to be done again"


def test_everything_but_the_active_segment_is_cleanable() -> None:
    found = cleanable(
        segments(10, 20, 30, 40),
        CONFIG,
        first_dirty_offset=0,
        last_stable_offset=400,
        now_ms=NOW_MS,
    )
    assert (found.end_offset, found.clean_bytes, found.dirty_bytes) == (300, 0, 60)
    assert found.dirty_ratio == 1.0
    assert found.is_due


def test_ratio_counts_what_was_cleaned_before() -> None:
    found = cleanable(
        segments(60, 20, 20, 5),
        CONFIG,
        first_dirty_offset=100,
        last_stable_offset=400,
        now_ms=NOW_MS,
    )
    assert (found.clean_bytes, found.dirty_bytes) == (60, 40)
    assert found.dirty_ratio == 0.4
    assert not found.is_due, "40 % is below min.cleanable.dirty.ratio"


def test_ratio_must_be_exceeded() -> None:
    half = segments(20, 20, 5)
    assert not cleanable(
        half, CONFIG, first_dirty_offset=100, last_stable_offset=300, now_ms=NOW_MS
    ).is_due


def test_a_log_with_only_an_active_segment_is_never_due() -> None:
    eager = LogConfig(cleanup_compact=True, min_cleanable_dirty_ratio=0.0)
    found = cleanable(
        segments(50), eager, first_dirty_offset=0, last_stable_offset=100, now_ms=NOW_MS
    )
    assert found.dirty_ratio == 0.0
    assert not found.is_due


def test_a_segment_that_reaches_past_the_last_stable_offset_waits() -> None:
    found = cleanable(
        segments(10, 20, 30, 40),
        CONFIG,
        first_dirty_offset=0,
        last_stable_offset=250,
        now_ms=NOW_MS,
    )
    assert (found.end_offset, found.dirty_bytes) == (200, 30)


def test_min_compaction_lag_protects_young_segments_and_all_behind_them() -> None:
    config = LogConfig(cleanup_compact=True, min_compaction_lag_ms=1000)
    times = (NOW_MS - 5000, NOW_MS - 999, NOW_MS - 5000, NOW_MS)
    found = cleanable(
        segments(10, 20, 30, 40, times=times),
        config,
        first_dirty_offset=0,
        last_stable_offset=400,
        now_ms=NOW_MS,
    )
    assert (found.end_offset, found.dirty_bytes) == (100, 10)


def test_max_compaction_lag_forces_a_log_that_is_hardly_dirty() -> None:
    config = LogConfig(cleanup_compact=True, max_compaction_lag_ms=1000)
    for age_ms, overdue_ms in ((1000, 0), (1001, 1)):
        found = cleanable(
            segments(1000, 1, 5, times=(1, NOW_MS - age_ms, NOW_MS)),
            config,
            first_dirty_offset=100,
            last_stable_offset=300,
            now_ms=NOW_MS,
        )
        assert found.overdue_ms == overdue_ms
        assert found.is_due == (overdue_ms > 0)


def sized(*parts: tuple[int, int, int, int]) -> list[SegmentFacts]:
    """(offsets, size, offset index bytes, time index bytes) of each."""
    found: list[SegmentFacts] = []
    base_offset = 0
    for offsets, size, index_bytes, time_bytes in parts:
        end_offset = base_offset + offsets
        found.append(SegmentFacts(base_offset, end_offset, size, index_bytes, time_bytes))
        base_offset = end_offset
    return found


def grouped(config: LogConfig, *parts: tuple[int, int, int, int]) -> list[int]:
    return [len(group) for group in group_segments(sized(*parts), config)]


def test_small_neighbours_are_grouped_by_size() -> None:
    config = LogConfig(segment_bytes=100)
    assert grouped(config, *[(10, size, 0, 0) for size in (40, 60, 1, 99, 100, 120, 3)]) == [
        2,
        2,
        1,
        1,
        1,
    ]


def test_groups_stay_within_the_index_size() -> None:
    config = LogConfig(segment_index_bytes=24)
    assert grouped(config, (10, 1, 16, 0), (10, 1, 8, 0), (10, 1, 8, 0)) == [2, 1]
    assert grouped(config, (10, 1, 0, 12), (10, 1, 0, 12), (10, 1, 0, 12)) == [2, 1]


def test_groups_stay_within_the_reach_of_a_relative_offset() -> None:
    config = LogConfig()
    assert grouped(config, (2**31 - 1, 1, 0, 0), (1, 1, 0, 0), (1, 1, 0, 0)) == [2, 1]
    assert grouped(config, (2**31 - 1, 1, 0, 0), (2**31, 0, 0, 0), (9, 0, 0, 0)) == [3], (
        "nothing in an empty segment has to be indexed"
    )


def test_no_segments_no_groups() -> None:
    assert grouped(LogConfig()) == []
