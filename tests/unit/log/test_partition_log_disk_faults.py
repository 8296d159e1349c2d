"""Each disk operation of a roll, an append and a truncation refused in turn, by a full disk and by a failing one."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from uuid import UUID

import pytest

from headrace.controller.values import PartitionState
from headrace.errors import DiskFailed, DiskFull
from headrace.log.append_result import Appended
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.segments.segment import SEGMENT_SUFFIXES, offset_name
from headrace.records.batch_view import read_header, stamp
from headrace.replication.partition import Partition
from headrace.wire.refusal import Refusal
from tests.support.crashing_disk import Crashed
from tests.support.failing_disk import FailingDisk
from tests.support.log_samples import (
    DIRECTORY,
    NOW_MS,
    TOPIC_PARTITION,
    append,
    make_batch,
    make_producer_batch,
    open_sample,
    read_slice,
    stored_batches,
)

# Three batches of two records fill a segment; a batch of one record fits where one of two does not.
CONFIG = LogConfig(
    segment_bytes=3 * len(make_batch(2)) + len(make_batch(1)), index_interval_bytes=50
)
MANY_OPERATIONS = 200
ALONE = PartitionState((1,), isr=(1,), leader=1, leader_epoch=5, partition_epoch=3, min_isr=1)


def new_disk() -> FailingDisk:
    disk = FailingDisk()
    disk.make_directory(DIRECTORY)
    disk.sync_directory("/")
    disk.sync_directory("/data")
    return disk


@dataclass
class Story:
    """A log and the batches that it has taken; `broken` once its disk failed, which ends its use."""

    disk: FailingDisk = field(default_factory=new_disk)
    taken: list[bytes] = field(default_factory=list)
    at_least: int = 0  # so many of `taken` must be there after a truncation that was not finished
    broken: bool = False
    producers: int = 0
    durable: int = 0  # so many of `taken` have been synced
    checkpointed: int = 0  # the recovery point as written last
    log: PartitionLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = open_sample(self.disk, CONFIG)

    @property
    def end_offset(self) -> int:
        return read_header(self.taken[-1]).next_offset if self.taken else 0

    def try_to(self, change: Callable[[], None]) -> None:
        """Full disks pass, failed ones do not."""
        if not self.broken:
            try:
                change()
            except DiskFull:
                pass
            except DiskFailed:
                self.broken = True

    def append(self, count: int) -> None:
        batch = make_batch(count, timestamp=NOW_MS + len(self.taken))

        def change() -> None:
            append(self.log, batch)
            self.taken.append(bytes(batch))
            self.at_least = len(self.taken)

        self.try_to(change)

    def append_of_producer(self) -> None:
        self.producers += 1
        batch = make_producer_batch(self.producers, 0)

        def change() -> None:
            append(self.log, batch)
            self.taken.append(bytes(batch))
            self.at_least = len(self.taken)

        self.try_to(change)

    def follow(self, base_offset: int) -> None:
        batch = make_batch(1)
        stamp(batch, 0, base_offset, 0)

        def change() -> None:
            self.log.append_as_follower(batch, now_ms=NOW_MS)
            self.taken.append(bytes(batch))
            self.at_least = len(self.taken)

        self.try_to(change)

    def truncate(self, batches: int) -> None:
        if not self.broken:
            self.at_least = batches
            self.durable = min(self.durable, batches)
            offset = read_header(self.taken[batches]).base_offset
            self.try_to(lambda: self.log.truncate_to(offset, now_ms=NOW_MS))
            if self.log.log_end_offset == offset and not self.broken:
                del self.taken[batches:]
            self.at_least = batches if self.broken else len(self.taken)

    def flush(self) -> None:
        def change() -> None:
            self.log.flush(NOW_MS)
            self.durable = len(self.taken)

        self.try_to(change)

    def check_files(self) -> None:
        """What a roll or a cut could not finish leaves no segment behind that only the directory knows."""
        names = {each.name for each in self.disk.list_files(DIRECTORY)}
        found = {name.split(".")[0] for name in names if name.endswith(SEGMENT_SUFFIXES[0])}
        assert found == {offset_name(each.base_offset) for each in self.log.segments}

    def check(self, log: PartitionLog) -> None:
        found = [
            segment.batch_bytes(batch) for segment in log.segments for batch in segment.batches()
        ]
        assert found == self.taken[: len(found)]
        assert len(found) >= self.at_least
        for batch in found:
            header = read_header(batch)
            for offset in range(header.base_offset, header.next_offset):
                assert read_slice(log, offset, 1).copy() == batch


def rolls(story: Story) -> None:
    """A batch that needs a new segment, one that still fits into the old one, and so on."""
    for count in (2, 1, 2, 1, 1, 2, 2):
        story.append(count)
    story.append_of_producer()
    story.append(2)


def cuts(story: Story) -> None:
    """Into the active segment, into an older one, down to nothing; with appends in between."""
    story.truncate(len(story.taken) - 1)
    story.append(1)
    story.truncate(min(3, len(story.taken) - 1))
    rolls(story)
    story.flush()
    story.truncate(min(4, len(story.taken) - 1))
    story.append(2)
    story.truncate(0)
    rolls(story)


def gaps(story: Story) -> None:
    """A follower of a compacted log, which leads at the end."""
    story.follow(story.end_offset + 4)
    story.follow(story.end_offset + 2**31)
    story.append(1)
    story.append(2)
    story.follow(story.end_offset + 2)


STORIES = [rolls, cuts, gaps]


def new_story(tell: Callable[[Story], None]) -> Story:
    story = Story()
    for count in (2, 2, 2, 2, 2, 2):
        story.append(count)
    if tell is cuts:
        story.flush()
        story.checkpointed = story.log.recovery_point
    return story


@pytest.mark.parametrize("tell", STORIES)
@pytest.mark.parametrize("lasts", [False, True])
def test_a_full_disk_costs_only_what_was_refused(
    tell: Callable[[Story], None], lasts: bool
) -> None:
    for operations in range(MANY_OPERATIONS):
        story = new_story(tell)
        story.disk.fail(operations, DiskFull, lasts=lasts)
        tell(story)
        story.disk.work()
        if not story.disk.has_failed:
            break
        if story.broken:  # a cut that has begun and cannot end
            story.check(open_sample(story.disk, CONFIG))
            continue
        story.check(story.log)
        if not lasts:  # else what was begun could not be taken back; opening the log does that
            story.check_files()
        rolls(story)
        story.check(story.log)
        recovery_point = story.log.recovery_point
        story.check(open_sample(story.disk, CONFIG, recovery_point=recovery_point))
        story.log = open_sample(story.disk, CONFIG, recovery_point=recovery_point)
        story.check(story.log)
        rolls(story)
        story.log.close(NOW_MS)
        story.check(open_sample(story.disk, CONFIG, clean=True))
    else:
        pytest.fail("the story is longer than that")


@pytest.mark.parametrize("tell", STORIES)
def test_a_failing_disk_costs_nothing_that_was_taken(tell: Callable[[Story], None]) -> None:
    for operations in range(10 * MANY_OPERATIONS):
        story = new_story(tell)
        story.disk.fail(operations, DiskFailed, reads=True)
        tell(story)
        story.disk.work()
        if not story.disk.has_failed:
            break
        story.log.abandon()
        recovery_point = story.log.recovery_point
        story.check(open_sample(story.disk, CONFIG, recovery_point=recovery_point))
    else:
        pytest.fail("the story is longer than that")


@pytest.mark.parametrize("tell", STORIES)
@pytest.mark.parametrize("error", [DiskFull, Crashed])
def test_power_lost_at_any_operation_or_some_time_after_one_was_refused(
    tell: Callable[[Story], None], error: type[BaseException]
) -> None:
    for operations in range(MANY_OPERATIONS):
        for seed in range(2):
            story = new_story(tell)
            story.disk.fail(operations, error)
            with suppress(Crashed):
                tell(story)
            story.disk.work()
            story.at_least = story.durable
            story.disk.crash(Random(seed))
            story.check(open_sample(story.disk, CONFIG, recovery_point=story.checkpointed))
        if not story.disk.has_failed:
            break
    else:
        pytest.fail("the story is longer than that")


# ---- what a roll that failed in an older version has left behind


def with_leftover(offset: int) -> Story:
    story = Story()
    for _ in range(3):
        story.append(2)
    for suffix in SEGMENT_SUFFIXES[:3]:
        story.disk.create(f"{DIRECTORY}/{offset_name(offset)}{suffix}")
    return story


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("rolled_later", [True, False])
@pytest.mark.parametrize("recovery_point", [0, 5, 7, 8, 1000])
def test_an_empty_segment_within_another_is_removed(
    clean: bool, rolled_later: bool, recovery_point: int
) -> None:
    story = with_leftover(6)
    story.append(1)  # into the segment at 0, behind the offset at which the empty one starts
    if rolled_later:
        for _ in range(3):
            story.append(2)
    if clean:
        story.log.close(NOW_MS)
    log = open_sample(story.disk, CONFIG, clean=clean, recovery_point=recovery_point)
    assert log.log_end_offset == story.end_offset
    story.check(log)
    assert not story.disk.exists(f"{DIRECTORY}/{offset_name(6)}.log")
    story.log = log
    rolls(story)
    story.check(log)
    story.check(open_sample(story.disk, CONFIG))


def test_an_empty_segment_at_the_end_of_the_log_stays() -> None:
    story = with_leftover(6)
    for clean in (False, True):
        log = open_sample(story.disk, CONFIG, clean=clean, recovery_point=6)
        assert [segment.base_offset for segment in log.segments] == [0, 6]
        log.close(NOW_MS)


# ---- the recovery point


@pytest.mark.parametrize("seed", range(6))
def test_a_failed_append_behind_a_gap_does_not_move_the_recovery_point_past_the_end(
    seed: int,
) -> None:
    """The roll for the batch behind the gap succeeds, its append does not, and another leader goes on at the old end."""
    story = Story()
    for _ in range(3):
        story.append(2)
    story.follow(story.end_offset)
    for operations in range(MANY_OPERATIONS):
        story.disk.fail(operations, DiskFull, lasts=True)
        story.follow(1000)
        story.disk.work()
        if story.log.segments.active.base_offset == 1000:
            break
    assert story.log.log_end_offset == story.end_offset == 7
    plan = story.log.unflushed(sealed_only=True)
    plan.run()
    story.log.mark_flushed(plan, NOW_MS)
    assert story.log.recovery_point <= 7
    assert not story.log.has_unflushed_segments
    for _ in range(20):
        story.follow(story.end_offset)
    story.flush()
    assert story.log.recovery_point == story.end_offset
    story.at_least = len(story.taken)
    story.disk.crash(Random(seed))
    again = open_sample(story.disk, CONFIG, recovery_point=story.log.recovery_point)
    story.check(again)
    assert again.log_end_offset == story.end_offset


# ---- a flush at every append


@pytest.mark.parametrize("lasts", [False, True])
def test_a_batch_whose_flush_was_refused_is_durable_before_its_retry_is_acknowledged(
    lasts: bool,
) -> None:
    config = LogConfig(flush_messages=1)
    for operations in range(MANY_OPERATIONS):
        disk = new_disk()
        log = open_sample(disk, config)
        partition = Partition(
            TOPIC_PARTITION,
            UUID(int=7),
            log,
            high_watermark=0,
            on_disk_failed=lambda _, error: pytest.fail(str(error)),
        )
        partition.become_leader(1, ALONE, now_ms=NOW_MS)
        disk.fail(operations, DiskFull, lasts=lasts)
        first = partition.append([make_producer_batch(7, 0)], acks=-1, now_ms=NOW_MS)
        second = partition.append([make_producer_batch(7, 0)], acks=-1, now_ms=NOW_MS)
        if lasts and isinstance(first, Refusal):
            assert isinstance(second, Refusal), "nothing can be synced"
        disk.work()
        third = partition.append([make_producer_batch(7, 0)], acks=-1, now_ms=NOW_MS)
        assert isinstance(third, Appended)
        assert (log.recovery_point, log.log_end_offset, partition.high_watermark) == (1, 1, 1)
        disk.crash(Random(operations))
        assert open_sample(disk, config, recovery_point=1).log_end_offset == 1
        if not disk.has_failed:
            break
    else:
        pytest.fail("the story is longer than that")


def test_the_leader_epochs_are_durable_before_the_batch_takes_the_last_room() -> None:
    disk = new_disk()
    log = open_sample(disk, LogConfig(flush_messages=1))
    append(log, make_batch(), leader_epoch=1)
    log.assign_epoch(2, 1)
    disk.capacity_bytes = disk.used_bytes + len(make_batch())
    append(log, make_batch(), leader_epoch=2)
    assert (log.log_end_offset, log.recovery_point) == (2, 2)


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_a_log_that_is_flushed_at_every_append_opens_on_a_full_disk(seed: int | None) -> None:
    config = LogConfig(flush_messages=1)
    disk = new_disk()
    log = open_sample(disk, LogConfig())
    for epoch in range(3):
        append(log, make_batch(), leader_epoch=epoch)
    if seed is not None:
        disk.crash(Random(seed))
    disk.capacity_bytes = disk.used_bytes
    again = open_sample(disk, config)
    found = stored_batches(again)
    disk.crash(Random(0))
    assert stored_batches(open_sample(disk, config)) == found, "what could be read is durable"
