"""What must be true in a simulation: each rule is broken once, and noticed."""

from random import Random
from uuid import UUID

import pytest

from headrace.coordination.nodes import (
    BrokerEpochNode,
    ControllerEpochNode,
    PartitionStateNode,
    TopicNode,
)
from headrace.coordination.store import Node
from headrace.ids import TopicIdPartition, TopicPartition, text_of_id
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import open_log
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.testing.memory_disk import MemoryDisk
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.story import Story, Violation
from headrace.testing.simulation.truth import ReplicaView, Truth, read_batches
from headrace.testing.virtual.scheduler import Scheduler

ORDERS = TopicPartition("orders", 0)
NOW_MS = 1_000
TOPIC_ID = UUID(int=7)
WHERE = TopicIdPartition(TOPIC_ID, 0)
STATE = PartitionStateNode.path(*ORDERS)


def log_of(*values: bytes, sequences: tuple[int, ...] = (), leader_epoch: int = 0) -> PartitionLog:
    """A log with one record in each batch; with sequences, of an idempotent producer."""
    log = open_log(MemoryDisk(), f"/d/{ORDERS}", ORDERS, LogConfig(), now_ms=NOW_MS)
    for number, value in enumerate(values):
        options = BatchOptions()
        if sequences:
            options = BatchOptions(producer_id=9, producer_epoch=0, base_sequence=sequences[number])
        batch = build_batch(records_at(0, NOW_MS, [(None, value)]), options)
        # As a follower takes it, so that nobody minds the sequences.
        stamped = bytearray(batch)
        stamped[0:8] = number.to_bytes(8, "big")
        stamped[12:16] = leader_epoch.to_bytes(4, "big")
        log.append_as_follower(bytes(stamped), now_ms=NOW_MS)
    return log


def seen(log: PartitionLog) -> ReplicaView:
    view = ReplicaView(log)
    view.refresh(log)
    return view


def truth_of(log: PartitionLog) -> Truth:
    """All of a log is committed."""
    truth = Truth("orders", WHERE)
    truth.views[1] = seen(log)
    truth.commit(truth.views[1], log.log_end_offset)
    return truth


def data_of(log: PartitionLog) -> bytes:
    return b"".join(batch.data for batch in read_batches(log, log.log_start_offset))


def test_what_is_served_is_what_is_committed() -> None:
    truth = truth_of(log_of(b"a", b"b", b"c"))
    assert truth.check_served(data_of(log_of(b"a", b"b", b"c"))) == 3
    with pytest.raises(Violation, match="consistent read: orders-0 served batch 1-1"):
        truth.check_served(data_of(log_of(b"a", b"x", b"c")))
    with pytest.raises(Violation, match="consistent read: orders-0 served batch 3-3"):
        truth.check_served(data_of(log_of(b"a", b"b", b"c", b"d")))
    truth.delete_to(2)
    assert truth.check_served(data_of(log_of(b"a", b"x", b"c"))) == 3, (
        "what is deleted is no promise"
    )


def test_what_is_acknowledged_is_committed_at_that_offset() -> None:
    truth = truth_of(log_of(b"a", b"b"))
    sent = read_batches(log_of(b"b"), 0)[0].data
    truth.check_acked(1, sent)
    for offset in (0, 2):
        with pytest.raises(Violation, match="acknowledged means committed"):
            truth.check_acked(offset, sent)


@pytest.mark.parametrize("sequences", [(0, 2), (0, 1, 0), (0, 0), (1,)])
def test_an_idempotent_producer_is_there_once_and_in_order(sequences: tuple[int, ...]) -> None:
    truth_of(log_of(b"a", b"b", b"c", sequences=(0, 1, 2))).check_sequences()
    values = [b"%d" % sequence for sequence in sequences]
    with pytest.raises(Violation, match="exactly once"):
        truth_of(log_of(*values, sequences=sequences)).check_sequences()


def test_a_batch_may_come_again_after_its_first_copy_was_deleted() -> None:
    log = log_of(b"a", b"b", b"b", sequences=(0, 1, 1))
    truth = Truth("orders", WHERE)
    view = truth.views[1] = seen(log)
    truth.commit(view, 2)
    truth.delete_to(2)
    truth.commit(view, 3)
    truth.check_sequences()


def test_how_far_a_replica_agrees() -> None:
    truth = truth_of(log_of(b"a", b"b", b"c"))
    other = truth.views[2] = seen(log_of(b"a", b"x", b"c"))
    truth.compare()
    assert other.good_to == 1
    other.log.truncate_to(1, now_ms=NOW_MS)
    other.refresh(other.log)
    other.log.append_as_follower(read_batches(truth.views[1].log, 1)[0].data, now_ms=NOW_MS)
    assert other.refresh(other.log)
    truth.compare()
    assert other.good_to == 2
    assert not other.refresh(other.log), "nothing has changed since"


def invariants_of_orders() -> Invariants:
    """Of a cluster with one topic."""
    scheduler = Scheduler(Random(1))
    invariants = Invariants(Story(scheduler), lambda: scheduler.now_us)
    topic = TopicNode(topic_id=text_of_id(TOPIC_ID), partitions={0: (1, 2)})
    invariants.on_write(TopicNode.path("orders"), None, Node(topic.encode(), 0, 1))
    return invariants


def stored(invariants: Invariants, *, leader: int, isr: tuple[int, ...], version: int = 0) -> None:
    node = PartitionStateNode(controller_epoch=1, leader=leader, leader_epoch=version, isr=isr)
    invariants.on_write(STATE, None, Node(node.encode(), version, 1))


def note_epoch(invariants: Invariants, broker_id: int, epoch: int, before: int | None) -> None:
    old = None if before is None else Node(BrokerEpochNode(before).encode(), 0, 1)
    new = Node(BrokerEpochNode(epoch).encode(), 1, 1)
    invariants.on_write(BrokerEpochNode.path(broker_id), old, new)


def test_no_epoch_goes_back() -> None:
    invariants = invariants_of_orders()
    stored(invariants, leader=1, isr=(1, 2), version=4)
    with pytest.raises(Violation, match="metadata monotonic"):
        stored(invariants, leader=1, isr=(1, 2), version=3)
    note_epoch(invariants, 1, 18, before=3)
    with pytest.raises(Violation, match="metadata monotonic: broker 1"):
        note_epoch(invariants, 1, 3, before=18)
    with pytest.raises(Violation, match="metadata monotonic: controller epoch"):
        invariants.on_write(ControllerEpochNode.PATH, Node(b"7", 1, 1), Node(b"7", 2, 1))


@pytest.mark.parametrize(
    ("leader", "isr", "is_noticed"),
    [(2, (1, 2), True), (1, (1, 2), True), (2, (2,), False), (1, (1,), False)],
    ids=["follows in sync", "leads others", "is out", "leads, for nobody else can"],
)
def test_who_died_has_to_catch_up(leader: int, isr: tuple[int, ...], *, is_noticed: bool) -> None:
    invariants = invariants_of_orders()
    stored(invariants, leader=leader, isr=isr)
    invariants.on_died(1, txn=10)
    note_epoch(invariants, 1, 8, before=3)  # an incarnation from before its death
    if is_noticed:
        with pytest.raises(Violation, match="unclean exclusion"):
            note_epoch(invariants, 1, 12, before=8)
    else:
        note_epoch(invariants, 1, 12, before=8)


def test_who_is_in_sync_has_everything_and_somebody_has() -> None:
    invariants = invariants_of_orders()
    truth = invariants.truths[WHERE]
    view = truth.views[1] = seen(log_of(b"a", b"b"))
    truth.views[2] = seen(log_of(b"a"))
    truth.commit(view, 2)
    stored(invariants, leader=1, isr=(1,))
    invariants.check()
    stored(invariants, leader=1, isr=(1, 2), version=1)
    with pytest.raises(Violation, match="strong ISR: orders-0: broker 2"):
        invariants.check()
    invariants.on_lost(2, txn=10)
    invariants.check()
    invariants.on_lost(1, txn=11)
    with pytest.raises(Violation, match="committed never lost"):
        invariants.check()


def test_an_unclean_election_must_have_been_asked_for() -> None:
    for is_asked_for in (True, False):
        invariants = invariants_of_orders()
        truth = invariants.truths[WHERE]
        for broker_id, log in ((1, log_of(b"a", b"b")), (2, log_of(b"a"))):
            truth.views[broker_id] = seen(log)
        truth.commit(truth.views[1], 2)
        stored(invariants, leader=1, isr=(1,))
        if is_asked_for:
            invariants.unclean_wishes.add(ORDERS)
            stored(invariants, leader=2, isr=(2,), version=1)
            assert truth.end == 1, "what the new leader does not have is given up"
        else:
            with pytest.raises(Violation, match="unclean election: orders-0"):
                stored(invariants, leader=2, isr=(2,), version=1)
