"""What a follower makes of its leader's answers: where it cuts, and when it starts again."""

from uuid import UUID

import pytest

from headrace.controller.values import PartitionState
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.records.batch_view import stamp
from headrace.replication.follower import LossyEpochs
from headrace.replication.following import FetchOutcome, lag_after, question, take, take_start
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import EpochEndOffset, PartitionData
from headrace.wire.refusal import Refusal

ORDERS = TopicPartition("orders", 0)
NOW_MS = 1_000


def following(*, high_watermark: int) -> Partition:
    """Five batches of epoch 1, of which so many are known to be committed; the leader is in epoch 4."""

    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    log = open_log(
        MemoryDisk(), f"/d/{ORDERS}", ORDERS, LogConfig(), now_ms=NOW_MS, topic_id=UUID(int=7)
    )
    for number in range(5):
        options = BatchOptions(producer_id=9, producer_epoch=0, base_sequence=number)
        batch = build_batch(records_at(0, NOW_MS, [(None, b"value")]), options)
        log.append_as_leader([batch], leader_epoch=1, now_ms=NOW_MS)
    made = Partition(
        ORDERS,
        UUID(int=7),
        log,
        high_watermark=high_watermark,
        on_disk_failed=on_disk_failed,
    )
    made.become_follower(2, 4)
    return made


def diverging(*, end_offset: int, log_start_offset: int) -> PartitionData:
    return PartitionData(
        high_watermark=7,
        log_start_offset=log_start_offset,
        diverging_epoch=EpochEndOffset(epoch=1, end_offset=end_offset),
    )


@pytest.mark.parametrize("log_start_offset", [2, 3])
def test_a_doubtful_rest_below_the_leaders_start_is_dropped(log_start_offset: int) -> None:
    """The leader deleted what it could be compared with; what it says of producers was perhaps never committed."""
    follower = following(high_watermark=1)
    answer = diverging(end_offset=2, log_start_offset=log_start_offset)
    assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.GO_ON
    log = follower.log
    assert (log.log_start_offset, log.log_end_offset) == (log_start_offset, log_start_offset)
    assert follower.high_watermark == log_start_offset
    assert log.leader_epochs.entries == ()
    assert not len(log.producers)


@pytest.mark.parametrize(
    ("high_watermark", "log_start_offset"),
    [(2, 2), (1, 1), (1, 0)],
    ids=["all of it is committed", "the leader has a part of it", "the leader has all of it"],
)
def test_else_the_log_is_cut_where_it_parts(high_watermark: int, log_start_offset: int) -> None:
    follower = following(high_watermark=high_watermark)
    answer = diverging(end_offset=2, log_start_offset=log_start_offset)
    assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.GO_ON
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (0, 2)
    assert follower.high_watermark == high_watermark
    assert len(follower.log.producers) == 1


def test_what_is_committed_and_not_here_is_the_lag() -> None:
    follower = following(high_watermark=5)
    found = []
    for high_watermark in (5, 9, 3):
        answer = PartitionData(high_watermark=high_watermark, log_start_offset=0)
        assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.GO_ON
        found.append(lag_after(follower, answer))
    assert found == [0, 4, 0]


def test_the_leader_is_told_of_a_deletion_that_is_on_the_disk() -> None:
    """DeleteRecords is answered by it: a follower that was killed now would have the records back."""
    follower = following(high_watermark=5)
    answer = PartitionData(high_watermark=5, log_start_offset=3)
    assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.GO_ON
    assert follower.log.log_start_offset == 3
    assert question(follower, max_bytes=1).log_start_offset == 0
    follower.log.checkpointed_start = 3
    assert question(follower, max_bytes=1).log_start_offset == 3


def stored(first: int, count: int) -> bytes:
    """Batches of epoch 4, one record each, as the leader has them from `first` on."""
    made = b""
    for offset in range(first, first + count):
        batch = bytearray(build_batch(records_at(offset, NOW_MS, [(None, bytes(1000))])))
        stamp(batch, 0, offset, 4)
        made += batch
    return made


def test_a_follower_on_a_full_disk_asks_again_and_goes_on_when_there_is_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    follower = following(high_watermark=5)
    disk = follower.log.disk
    assert isinstance(disk, MemoryDisk)
    answer = PartitionData(high_watermark=10, log_start_offset=0, records=stored(5, 5))
    assert answer.records is not None
    disk.capacity_bytes = disk.used_bytes + len(answer.records) // 2
    for _ in range(3):
        fetch_offset = question(follower, max_bytes=1).fetch_offset
        answer.records = stored(fetch_offset, 10 - fetch_offset)
        assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.WAIT
    # What fitted was written, and the refusal was told once.
    assert 5 < follower.log.log_end_offset < 10
    assert len([each for each in caplog.records if each.levelname == "ERROR"]) == 1
    disk.capacity_bytes = None
    fetch_offset = question(follower, max_bytes=1).fetch_offset
    answer.records = stored(fetch_offset, 10 - fetch_offset)
    assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.GO_ON
    assert (follower.log.log_end_offset, follower.high_watermark) == (10, 10)


def leading(count: int) -> Partition:
    """Elected uncleanly: it has this many records, all of epoch 1."""
    made = following(high_watermark=count)
    made.truncate_as_follower(count, now_ms=NOW_MS)
    made.become_leader(2, PartitionState((2, 1), (2,), 2, 4, 0, min_isr=1), now_ms=NOW_MS)
    return made


def fetched(found: PartitionRead | Refusal) -> PartitionData:
    """What a read yields, as an answer on the wire."""
    if isinstance(found, Refusal):
        return PartitionData(error_code=found.error_code)
    diverging = found.diverging
    return PartitionData(
        high_watermark=found.high_watermark,
        log_start_offset=found.log_start_offset,
        diverging_epoch=None
        if diverging is None
        else EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset),
        records=found.records.copy() if found.records.length else b"",
    )


def exchange(leader: Partition, follower: Partition) -> FetchOutcome:
    """One fetch of the follower, and its question for the leader's start if need be."""
    asked = question(follower, max_bytes=1 << 20)
    fetch = FollowerFetch(
        1, 10, asked.fetch_offset, asked.last_fetched_epoch, 4, asked.log_start_offset
    )
    found = leader.read_as_leader(fetch, 1 << 20, now_ms=NOW_MS)
    taken = take(follower, fetched(found), now_ms=NOW_MS)
    if taken is FetchOutcome.ASK_FOR_START:
        taken = take_start(follower, leader.log.log_start_offset, now_ms=NOW_MS)
    return taken


@pytest.mark.parametrize("is_deleted", [True, False])
def test_an_empty_log_past_the_leaders_end_starts_again(is_deleted: bool) -> None:
    """After an unclean election. There is no epoch to compare by, and nothing that could be lost."""
    follower = following(high_watermark=5)
    if is_deleted:
        follower.log.advance_log_start(5)
    else:
        follower.start_again_at(7, now_ms=NOW_MS)
    leader = leading(3)
    for _ in range(3):
        assert exchange(leader, follower) is FetchOutcome.GO_ON
    log = follower.log
    assert (log.log_start_offset, log.log_end_offset, follower.high_watermark) == (0, 3, 3)


def test_a_log_with_records_is_not_dropped_because_a_leader_starts_earlier() -> None:
    """The epochs will tell where to cut."""
    follower = following(high_watermark=5)
    assert take_start(follower, 3, now_ms=NOW_MS) is FetchOutcome.WAIT
    assert follower.log.log_end_offset == 5


def test_a_log_that_begins_inside_a_batch_of_the_leader_warns_of_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """DeleteRecords cut the leader's log in the middle of a batch; the follower was emptied up to there."""
    caplog.set_level("INFO")
    follower = following(high_watermark=5)
    follower.start_again_at(50, now_ms=NOW_MS)
    batch = build_batch(records_at(0, NOW_MS, [(None, b"value")] * 100))
    stamp(batch, 0, 0, 4)
    answer = PartitionData(high_watermark=100, log_start_offset=50, records=bytes(batch))
    assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.GO_ON
    assert (follower.log.log_start_offset, follower.log.log_end_offset) == (50, 100)
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_a_cut_below_what_is_committed_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    follower = following(high_watermark=5)
    follower.become_follower(2, 4, LossyEpochs(unclean=4))
    take(follower, diverging(end_offset=2, log_start_offset=0), now_ms=NOW_MS)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def refused(follower: Partition, answer: PartitionData) -> bool:
    before = follower.log.log_end_offset, follower.high_watermark
    outcome = take(follower, answer, now_ms=NOW_MS)
    if outcome is FetchOutcome.GO_ON:
        assert follower.unfollowable is None
        return False
    assert (follower.log.log_end_offset, follower.high_watermark) == before
    assert "does not follow broker 2" in (follower.unfollowable or "")
    return True


def test_committed_records_are_kept_when_no_election_gave_them_up() -> None:
    """As when a backup of the store was restored, and the leader fell behind since."""
    assert refused(following(high_watermark=3), diverging(end_offset=2, log_start_offset=0))
    assert not refused(following(high_watermark=2), diverging(end_offset=2, log_start_offset=0))


@pytest.mark.parametrize(
    ("lossy", "is_refused"),
    [
        (LossyEpochs(unclean=2), False),
        (LossyEpochs(unclean=1), True),
        (LossyEpochs(crashed=1), False),
        (LossyEpochs(crashed=0), True),
        (LossyEpochs(crashed=2), False),
    ],
    ids=[
        "unclean election since",
        "unclean election before",
        "the leader of that epoch crashed",
        "that of an earlier one did",
        "that of a later one did, and lost the end of this one too",
    ],
)
def test_an_election_may_have_given_them_up(lossy: LossyEpochs, is_refused: bool) -> None:
    follower = following(high_watermark=3)
    follower.become_follower(2, 4, lossy)
    assert refused(follower, diverging(end_offset=2, log_start_offset=0)) is is_refused


def test_a_leader_that_crashed_may_have_lost_its_whole_epoch() -> None:
    follower = following(high_watermark=3)
    follower.become_follower(2, 4, LossyEpochs(crashed=1))
    answer = PartitionData(
        high_watermark=2, diverging_epoch=EpochEndOffset(epoch=0, end_offset=2), log_start_offset=0
    )
    assert not refused(follower, answer)


def written(*batches: tuple[int, int]) -> Partition:
    """A replica whose log has a batch of one record for each offset and epoch, all of them committed as far as the log reaches."""
    made = following(high_watermark=0)
    made.start_again_at(0, now_ms=NOW_MS)
    for offset, epoch in batches:
        batch = build_batch(records_at(0, NOW_MS, [(None, b"value")]))
        stamp(batch, 0, offset, epoch)
        made.append_as_follower(
            bytes(batch), high_watermark=offset + 1, log_start_offset=0, now_ms=NOW_MS
        )
    return made


def never_compacted() -> Partition:
    return written((0, 0), (1, 0), (2, 1), (3, 1), (4, 2))


def led(leader: Partition) -> Partition:
    leader.become_leader(2, PartitionState((2, 1), (2,), 2, 4, 0, min_isr=1), now_ms=NOW_MS)
    return leader


@pytest.mark.parametrize(
    "batches",
    [
        [(1, 0), (5, 3)],
        [(0, 0), (1, 0), (2, 1), (3, 1), (6, 3)],
        [(5, 3)],
    ],
    ids=["all of two epochs", "all of one epoch, and the record behind", "all that is here"],
)
def test_epochs_that_compaction_removed_are_no_loss(batches: list[tuple[int, int]]) -> None:
    """The leader copied a compacted log, and the topic is compacted no longer."""
    leader, follower = led(written(*batches)), never_compacted()
    for _ in range(6):
        assert exchange(leader, follower) is FetchOutcome.GO_ON
    assert follower.unfollowable is None
    assert follower.log.log_end_offset == leader.log.log_end_offset
    assert follower.log.leader_epochs.latest == 3


@pytest.mark.parametrize(
    "batches",
    [
        [(0, 0), (1, 0)],
        [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 3)],
        [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), (5, 0)],
        [(0, 0), (1, 0), (4, 3), (5, 3)],
    ],
    ids=["no records", "records of its own", "records of its own to the end", "one of its own"],
)
def test_other_records_in_their_place_are_a_loss(
    batches: list[tuple[int, int]], caplog: pytest.LogCaptureFixture
) -> None:
    leader, follower = led(written(*batches)), never_compacted()
    outcomes = [exchange(leader, follower) for _ in range(4)]
    assert outcomes[1:] == [FetchOutcome.WAIT] * 3  # and it is not looked at again and again
    assert "does not follow broker 2" in (follower.unfollowable or "")
    assert (follower.log.log_end_offset, follower.high_watermark) == (5, 5)
    assert len([each for each in caplog.records if each.levelname == "ERROR"]) == 1


def test_a_gap_is_looked_for_until_the_leader_answers() -> None:
    leader, follower = led(written((1, 0), (5, 3))), never_compacted()
    assert exchange(leader, follower) is FetchOutcome.GO_ON
    assert question(follower, max_bytes=1).fetch_offset == 2
    for answer in (PartitionData(error_code=6), PartitionData(high_watermark=6, records=b"")):
        assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.WAIT
        assert follower.log.log_end_offset == 5
    follower.become_follower(2, 4)
    assert question(follower, max_bytes=1).fetch_offset == 5, "another leadership is asked anew"


def test_a_gap_below_the_leaders_start_is_not_looked_for() -> None:
    answer = PartitionData(
        high_watermark=9, diverging_epoch=EpochEndOffset(epoch=0, end_offset=9), log_start_offset=3
    )
    assert refused(never_compacted(), answer)


def test_a_compacted_topic_is_asked_for_the_end_of_the_epoch_only() -> None:
    """Its replicas compact their logs by themselves, so one may have records that the other compacted."""
    answer = PartitionData(
        high_watermark=5, diverging_epoch=EpochEndOffset(epoch=0, end_offset=5), log_start_offset=0
    )
    follower = following(high_watermark=5)
    follower.log.update_config(LogConfig(cleanup_compact=True))
    assert not refused(follower, answer)
    assert follower.gap_check is None


@pytest.mark.parametrize(
    ("is_of_other_history", "lossy", "is_refused"),
    [
        (True, LossyEpochs(), True),
        (True, LossyEpochs(crashed=1), True),
        (True, LossyEpochs(unclean=2), False),
        (False, LossyEpochs(), False),
    ],
    ids=["another history", "whose leader crashed", "given up", "deleted by the leader"],
)
def test_a_log_that_ends_below_the_leaders_start_is_emptied_unless_it_is_of_another_history(
    is_of_other_history: bool, lossy: LossyEpochs, is_refused: bool
) -> None:
    follower = following(high_watermark=3)
    follower.become_follower(2, 4, lossy, is_of_other_history=is_of_other_history)
    answer = PartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    assert take(follower, answer, now_ms=NOW_MS) is FetchOutcome.ASK_FOR_START
    outcome = take_start(follower, 9, now_ms=NOW_MS)
    log = follower.log
    if is_refused:
        assert outcome is FetchOutcome.WAIT
        assert (log.log_start_offset, log.log_end_offset) == (0, 5)
        assert "which the coordination store has never given out" in (follower.unfollowable or "")
    else:
        assert outcome is FetchOutcome.GO_ON
        assert (log.log_start_offset, log.log_end_offset) == (9, 9)
        assert follower.unfollowable is None


def test_a_leader_that_is_refused_may_be_followed_in_another_epoch() -> None:
    follower = following(high_watermark=3)
    assert refused(follower, diverging(end_offset=2, log_start_offset=0))
    follower.become_follower(3, 5)
    assert follower.unfollowable is None
