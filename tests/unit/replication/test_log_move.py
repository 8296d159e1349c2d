"""A log on its way to another directory: whatever happens to the original meanwhile, the copy ends up equal."""

from contextlib import suppress
from uuid import UUID

import pytest

from headrace.broker.upkeep.housekeeping import note_replicas
from headrace.errors import DiskFailed, DiskFull, LogClosed
from headrace.ids import TopicPartition
from headrace.log.files.checkpoint import write_topic_id
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDir, LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.log.segments.segment import offset_name
from headrace.replication.log_move import LogMove
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.testing.memory_disk import MemoryDisk
from tests.support.failing_disk import FailingDisk
from tests.support.log_samples import NOW_MS, make_batch, make_producer_batch

PARTITION = TopicPartition("t", 0)
TOPIC_ID = UUID(int=7)
ORIGIN, TARGET = "/one", "/two"
CHUNK = 200


class World:
    """Two directories and a log in the first."""

    def __init__(self) -> None:
        self.disk = MemoryDisk(capacity_bytes=1 << 24)
        self.ids = iter(range(1, 100))
        self.open()
        self.log = self.dirs.create(PARTITION, TOPIC_ID, now_ms=NOW_MS)
        self.partitions = PartitionTable()

    def open(self) -> None:
        self.dirs = LogDirs(
            self.disk,
            [ORIGIN, TARGET],
            config_for=lambda _: LogConfig(segment_bytes=1_000),
            new_id=lambda: UUID(int=next(self.ids)),
        )
        self.dirs.open(NOW_MS)

    def append(self, *counts: int, epoch: int = 0) -> None:
        for count in counts:
            self.log.append_as_leader([make_batch(count)], leader_epoch=epoch, now_ms=NOW_MS)

    def move(self) -> LogMove:
        origin, target = self.dirs.online
        return LogMove(
            self.disk, origin, target, self.log, now_ms=NOW_MS, id_=UUID(int=next(self.ids))
        )


@pytest.fixture
def world() -> World:
    return World()


def step(move: LogMove) -> None:
    move.align(now_ms=NOW_MS)
    move.write(move.read(CHUNK), now_ms=NOW_MS)


def follow(move: LogMove) -> None:
    for _ in range(1_000):
        step(move)
        if move.is_complete:
            return
    raise AssertionError("it does not arrive")


def content(log: PartitionLog) -> bytes:
    return b"".join(segment.log.read(0, segment.size) for segment in log.segments)


def assert_equal(log: PartitionLog, before: PartitionLog, before_content: bytes) -> None:
    assert content(log) == before_content
    assert log.leader_epochs.entries == before.leader_epochs.entries
    assert (log.log_start_offset, log.log_end_offset) == (
        before.log_start_offset,
        before.log_end_offset,
    )
    assert log.topic_id == before.topic_id


def test_the_copy_takes_the_place_of_the_original(world: World) -> None:
    world.append(*range(1, 30))
    world.log.append_as_leader([make_producer_batch(9, 0)], leader_epoch=3, now_ms=NOW_MS)
    world.log.assign_epoch(4, world.log.log_end_offset)  # in which nothing is written yet
    before = content(world.log)
    move = world.move()
    origin, target = world.dirs.online
    step(move)
    assert move.lag > 0
    assert world.dirs.is_moving(PARTITION)
    assert world.dirs.directory_of(PARTITION) is origin
    follow(move)
    moved, left = move.take_over(now_ms=NOW_MS)
    assert_equal(moved, world.log, before)
    assert world.log.is_closed
    assert world.dirs.directory_of(PARTITION) is target
    assert world.dirs.get(PARTITION) is moved
    assert not world.dirs.is_moving(PARTITION)
    again = moved.append_as_leader([make_producer_batch(9, 0)], leader_epoch=4, now_ms=NOW_MS)
    assert getattr(again, "duplicate", False)
    assert world.disk.list_directories(TARGET) == ["t-0"]
    assert [f"{ORIGIN}/{name}" for name in world.disk.list_directories(ORIGIN)] == [left]
    assert left.endswith("-delete")


def test_the_moved_log_is_found_after_a_restart(world: World) -> None:
    world.append(5, 5)
    move = world.move()
    follow(move)
    moved, _ = move.take_over(now_ms=NOW_MS)
    before = content(moved)
    world.dirs.close(NOW_MS)
    world.open()
    found = world.dirs.get(PARTITION)
    assert found is not None
    assert found.directory == f"{TARGET}/t-0"
    assert content(found) == before
    left = [f"{ORIGIN}/{name}" for name in world.disk.list_directories(ORIGIN)]
    assert left == world.dirs.leftovers


def test_the_copy_is_cut_where_the_original_was(world: World) -> None:
    world.append(3, 3, 3, epoch=1)
    world.append(3, 3, epoch=2)
    move = world.move()
    follow(move)
    world.log.truncate_to(6, now_ms=NOW_MS)
    assert not move.is_complete
    world.append(3, 3, 3, 3, 3, epoch=5)
    assert not move.is_complete
    before = content(world.log)
    follow(move)
    moved, _ = move.take_over(now_ms=NOW_MS)
    assert_equal(moved, world.log, before)


def test_the_copy_starts_again_where_the_original_does(world: World) -> None:
    world.append(3, 3, 3)
    move = world.move()
    follow(move)
    world.log.truncate_fully_and_start_at(100, now_ms=NOW_MS)
    assert not move.is_complete
    follow(move)
    assert move.copy.log_start_offset == move.copy.log_end_offset == 100
    world.append(2, epoch=3)
    before = content(world.log)
    follow(move)
    moved, _ = move.take_over(now_ms=NOW_MS)
    assert_equal(moved, world.log, before)


def test_a_log_that_starts_within_a_batch(world: World) -> None:
    world.append(10, 10, epoch=1)
    world.log.advance_log_start(4)
    before = content(world.log)
    move = world.move()
    follow(move)
    moved, _ = move.take_over(now_ms=NOW_MS)
    assert_equal(moved, world.log, before)


def test_records_deleted_under_way_are_deleted_in_the_copy(world: World) -> None:
    world.append(*[3] * 40)
    move = world.move()
    step(move)
    world.log.advance_log_start(100)
    follow(move)
    moved, _ = move.take_over(now_ms=NOW_MS)
    assert moved.log_start_offset == 100
    assert moved.log_end_offset == 120


def write_checkpoints(world: World) -> None:
    note_replicas(world.dirs, world.partitions)
    for checkpoints in world.dirs.checkpoints():
        for path, content in checkpoints.files:
            world.disk.replace(path, content)
        world.dirs.checkpointed(checkpoints)


def take_over_and_kill(world: World, move: LogMove, *, seen_epoch: int = -1) -> tuple[int, int]:
    """As a broker takes over. Returns where the log starts and ends after the next start."""
    follow(move)
    if not move.is_checkpointed(seen_epoch):
        write_checkpoints(world)
    assert move.is_complete
    assert move.is_checkpointed(seen_epoch)
    _, left = move.take_over(now_ms=NOW_MS)
    world.disk.remove_tree(left)
    world.disk.owner_ended()
    world.open()
    log = world.dirs.get(PARTITION)
    assert log is not None
    return log.log_start_offset, log.log_end_offset


@pytest.mark.parametrize("is_deleted_under_way", [False, True])
def test_deleted_records_are_not_back_after_a_move_and_a_kill(
    world: World, is_deleted_under_way: bool
) -> None:
    world.append(20)
    move = world.move() if is_deleted_under_way else None
    world.log.advance_log_start(10)
    write_checkpoints(world)
    assert take_over_and_kill(world, move or world.move()) == (10, 20)


@pytest.mark.parametrize("is_told_under_way", [False, True])
def test_what_a_replica_knows_to_be_committed_is_known_after_a_move_and_a_kill(
    world: World, is_told_under_way: bool
) -> None:
    """Or it would cut committed records for a leader of a restored backup."""
    world.append(20)
    partition = Partition(
        PARTITION,
        TOPIC_ID,
        world.log,
        high_watermark=15,
        on_disk_failed=lambda *_: None,
        seen_epoch=6,
    )
    world.partitions.add(partition)
    write_checkpoints(world)
    move = world.move()
    if is_told_under_way:
        follow(move)
        write_checkpoints(world)
        assert move.is_checkpointed(6)
    partition.become_follower(2, 7)
    assert not move.is_checkpointed(7)
    take_over_and_kill(world, move, seen_epoch=7)
    target = world.dirs.directory_of(PARTITION)
    assert target is not None
    assert target.path == TARGET
    assert target.high_watermarks == {PARTITION: 15}
    assert target.seen_epochs == {PARTITION: 7}


def test_a_moved_log_knows_when_its_producers_wrote_last(world: World) -> None:
    old = make_producer_batch(7, 0, timestamp=1)
    world.log.append_as_leader([old], leader_epoch=0, now_ms=NOW_MS)
    move = world.move()
    follow(move)
    moved, _ = move.take_over(now_ms=NOW_MS)
    assert moved.producers.expire(NOW_MS + 999, 1_000) == 0
    assert moved.producers.expire(NOW_MS + 1_000, 1_000) == 1


def test_a_moved_log_inherits_nothing_of_a_deleted_one_of_its_name(world: World) -> None:
    world.dirs.set_aside(PARTITION, "delete")
    world.dirs.wanted[PARTITION] = TARGET
    world.log = world.dirs.create(PARTITION, UUID(int=99), now_ms=NOW_MS)
    world.append(20)
    world.log.advance_log_start(20)
    write_checkpoints(world)
    world.dirs.set_aside(PARTITION, "delete")
    world.dirs.wanted[PARTITION] = ORIGIN
    world.log = world.dirs.create(PARTITION, TOPIC_ID, now_ms=NOW_MS)
    world.append(10)
    assert take_over_and_kill(world, world.move()) == (0, 10)


def test_an_empty_log_moves_too(world: World) -> None:
    move = world.move()
    follow(move)
    moved, _ = move.take_over(now_ms=NOW_MS)
    assert moved.directory == f"{TARGET}/t-0"
    assert moved.log_end_offset == 0


def test_a_move_that_is_given_up_leaves_the_original_alone(world: World) -> None:
    world.append(3)
    move = world.move()
    step(move)
    left = move.give_up()
    world.disk.remove_tree(left)
    assert not world.dirs.is_moving(PARTITION)
    assert world.disk.list_directories(TARGET) == []
    world.append(3)
    assert world.dirs.get(PARTITION) is world.log


def test_a_log_that_is_deleted_under_way_ends_its_move(world: World) -> None:
    world.append(3)
    move = world.move()
    world.dirs.set_aside(PARTITION, "delete")
    with pytest.raises(LogClosed):
        move.align(now_ms=NOW_MS)


def test_what_was_under_way_is_wanted_again_after_a_restart(world: World) -> None:
    world.append(3, 3)
    step(world.move())
    world.dirs.close(NOW_MS)
    world.open()
    assert world.dirs.wanted == {PARTITION: TARGET}
    assert world.disk.list_directories(TARGET) == []
    found = world.dirs.get(PARTITION)
    assert found is not None
    assert found.directory == f"{ORIGIN}/t-0"


def test_a_crash_between_the_two_renames_leaves_one_log(world: World) -> None:
    world.append(3, 3)
    before = content(world.log)
    move = world.move()
    follow(move)
    _, left = move.take_over(now_ms=NOW_MS)
    world.disk.rename(left, f"{ORIGIN}/t-0")
    world.dirs.close(NOW_MS)
    world.open()
    logs = list(world.dirs)
    assert len(logs) == 1
    assert content(logs[0]) == before
    directories = [*world.disk.list_directories(ORIGIN), *world.disk.list_directories(TARGET)]
    assert sorted(name.rpartition("-")[2] for name in directories) == ["0", "stray"]


def test_a_log_is_created_where_it_is_wanted(world: World) -> None:
    other = TopicPartition("u", 0)
    for count in range(3):
        world.dirs.create(TopicPartition("fill", count), TOPIC_ID, now_ms=NOW_MS)
    for path in (ORIGIN, TARGET):
        world.dirs.wanted[other] = path
        log = world.dirs.create(other, TOPIC_ID, now_ms=NOW_MS)
        assert log.directory == f"{path}/u-0"
        assert world.dirs.wanted == {}
        world.dirs.set_aside(other, "delete")


def test_a_target_that_goes_offline_takes_the_copy_with_it(world: World) -> None:
    world.append(3)
    move = world.move()
    target: LogDir = world.dirs.online[1]
    world.dirs.take_offline(target.path, "gone")
    assert not world.dirs.is_moving(PARTITION)
    with pytest.raises(LogClosed):
        move.align(now_ms=NOW_MS)
    assert not world.log.is_closed


class FaultyWorld(World):
    """The target is looked at first when the directories are opened."""

    disk: FailingDisk

    def __init__(self) -> None:
        self.disk = FailingDisk()
        self.ids = iter(range(1, 1_000))
        self.open()
        self.dirs.wanted[PARTITION] = ORIGIN
        self.log = self.dirs.create(PARTITION, TOPIC_ID, now_ms=NOW_MS)

    def open(self) -> None:
        self.dirs = LogDirs(
            self.disk,
            [TARGET, ORIGIN],
            config_for=lambda _: LogConfig(segment_bytes=1_000),
            new_id=lambda: UUID(int=next(self.ids)),
        )
        self.dirs.open(NOW_MS)

    def move(self) -> LogMove:
        target, origin = self.dirs.online
        return LogMove(
            self.disk, origin, target, self.log, now_ms=NOW_MS, id_=UUID(int=next(self.ids))
        )

    def only_log(self) -> PartitionLog:
        (log,) = self.dirs
        assert self.dirs.broken == {}
        return log


@pytest.mark.parametrize("lasts", [False, True])
@pytest.mark.parametrize("error", [DiskFailed, DiskFull])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_take_over_refused_at_any_operation_costs_nothing(
    error: type[DiskFailed], lasts: bool, is_killed: bool
) -> None:
    for operations in range(200):
        world = FaultyWorld()
        world.append(3, 3)
        move = world.move()
        follow(move)
        move.copy.flush(NOW_MS)
        world.disk.fail(operations, error, lasts=lasts)
        try:
            world.log, left = move.take_over(now_ms=NOW_MS)
        except DiskFailed:
            left = move.give_up()
        with suppress(DiskFailed):
            world.disk.remove_tree(left)
        world.disk.work()
        world.append(3, 3, 3)
        if is_killed:
            for directory in world.dirs.online:
                directory.release()
        else:
            world.dirs.close(NOW_MS)
        world.open()
        assert world.only_log().log_end_offset == 15
        if not world.disk.has_failed:
            break
    else:
        pytest.fail("it takes more operations than that")


@pytest.mark.parametrize("newer", [ORIGIN, TARGET])
@pytest.mark.parametrize("by", ["epoch", "length"])
def test_of_two_logs_of_one_partition_the_one_that_has_more_is_kept(newer: str, by: str) -> None:
    world = FaultyWorld()
    world.append(3, 3)
    older = TARGET if newer == ORIGIN else ORIGIN
    two = {
        path: open_log(
            world.disk,
            f"{path}/u-0",
            TopicPartition("u", 0),
            LogConfig(),
            now_ms=NOW_MS,
            topic_id=TOPIC_ID,
        )
        for path in (ORIGIN, TARGET)
    }
    for path, log in two.items():
        write_topic_id(world.disk, f"{path}/u-0", TOPIC_ID)
        log.append_as_leader([make_batch(2)], leader_epoch=0, now_ms=NOW_MS)
    if by == "epoch":
        two[older].append_as_leader([make_batch(5)], leader_epoch=0, now_ms=NOW_MS)
    two[newer].append_as_leader(
        [make_batch(1)], leader_epoch=1 if by == "epoch" else 0, now_ms=NOW_MS
    )
    for directory in world.dirs.online:
        directory.release()
    world.open()
    found = world.dirs.get(TopicPartition("u", 0))
    assert found is not None
    assert (found.directory, found.log_end_offset) == (f"{newer}/u-0", 3)
    assert [
        name.rpartition("-")[2] for name in world.disk.list_directories(older) if "u" in name
    ] == ["stray"]


@pytest.mark.parametrize("trouble", ["another topic", "first unreadable", "second unreadable"])
def test_of_two_logs_that_cannot_be_compared_neither_is_used(trouble: str) -> None:
    world = FaultyWorld()
    for path in (TARGET, ORIGIN):
        log = open_log(
            world.disk, f"{path}/u-0", TopicPartition("u", 0), LogConfig(), now_ms=NOW_MS
        )
        log.append_as_leader([make_batch(2)], leader_epoch=0, now_ms=NOW_MS)
        is_other = trouble == "another topic" and path == TARGET
        write_topic_id(world.disk, f"{path}/u-0", UUID(int=8) if is_other else TOPIC_ID)
    unreadable = {"first unreadable": TARGET, "second unreadable": ORIGIN}.get(trouble)
    if unreadable is not None:
        world.disk.bad_bytes.add((f"{unreadable}/u-0/{offset_name(0)}.log", 0))
    for _ in range(2):
        for directory in world.dirs.online:
            directory.release()
        world.open()
        assert list(world.dirs.broken) == [TopicPartition("u", 0)]
        assert world.dirs.get(TopicPartition("u", 0)) is None
    world.dirs.close(NOW_MS)
    world.disk.bad_bytes.clear()
    world.disk.remove_tree(f"{TARGET}/u-0")  # as the message asks for
    world.open()
    found = world.dirs.get(TopicPartition("u", 0))
    assert found is not None
    assert found.log_end_offset == 2


def test_a_move_that_cannot_begin_leaves_nothing_behind(world: World) -> None:
    """There was no room for one of its first files; the directory would take room until the next start."""
    world.append(1)
    for left_bytes in range(64):
        world.disk.capacity_bytes = world.disk.used_bytes + left_bytes
        with suppress(DiskFull):
            world.move()
            assert left_bytes, "there is no room for the topic's id"
            break
        assert world.disk.list_directories(TARGET) == []
        assert world.dirs.online[1].futures == {}
        assert world.disk.open_without_name() is None
    else:
        raise AssertionError("no room is ever enough")
