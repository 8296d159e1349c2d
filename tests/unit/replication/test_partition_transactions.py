"""A partition with transactions: how far readers of committed data may read, after a restart and on a follower."""

from uuid import UUID

from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.producers.producer_state import NOT_VERIFIED
from headrace.log.recovery import open_log
from headrace.records.control_batch import TxnMarker
from headrace.replication.partition import Partition
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal
from tests.support.log_samples import NOW_MS, make_producer_batch
from tests.unit.replication.test_partition_roles import State

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=7)
PRODUCER = 5


def opened(disk: MemoryDisk) -> PartitionLog:
    return open_log(disk, f"/d/{ORDERS}", ORDERS, LogConfig(), now_ms=NOW_MS, topic_id=TOPIC_ID)


def partition(log: PartitionLog, high_watermark: int = 0) -> Partition:
    def on_disk_failed(_: Partition, error: DiskFailed) -> None:
        raise AssertionError(error)

    return Partition(
        ORDERS, TOPIC_ID, log, high_watermark=high_watermark, on_disk_failed=on_disk_failed
    )


def leading(disk: MemoryDisk, isr: tuple[int, ...] = (1,), high_watermark: int = 0) -> Partition:
    made = partition(opened(disk), high_watermark)
    made.become_leader(1, State(3, isr), now_ms=NOW_MS)
    return made


def write(leader: Partition, sequence: int, epoch: int = 0) -> None:
    batch = make_producer_batch(PRODUCER, sequence, 1, epoch=epoch, transactional=True)
    appended = leader.append((batch,), acks=1, now_ms=NOW_MS, verified=NOT_VERIFIED)
    assert not isinstance(appended, Refusal), appended


def end(leader: Partition, *, commit: bool, epoch: int = 0) -> None:
    marker = TxnMarker(PRODUCER, epoch, 0, is_commit=commit)
    assert not isinstance(leader.append_marker(marker, now_ms=NOW_MS), Refusal)


def test_after_a_kill_the_transactions_that_were_committed_hold_nobody_back() -> None:
    """Nothing moves the high watermark of a quiet partition, which the checkpoint has at the log's end."""
    disk = MemoryDisk()
    leader = leading(disk)
    write(leader, 0)
    end(leader, commit=False)
    again = leading(disk, high_watermark=2)
    assert again.last_stable_offset == 2
    write(again, 1)
    assert again.last_stable_offset == 2


def test_a_transaction_is_open_again_after_a_kill() -> None:
    disk = MemoryDisk()
    write(leading(disk), 0)
    again = leading(disk, high_watermark=1)
    assert again.last_stable_offset == 0
    end(again, commit=True)
    assert again.last_stable_offset == 2


def test_a_marker_counts_when_it_is_replicated() -> None:
    leader = leading(MemoryDisk(), isr=(1, 2))
    write(leader, 0)
    end(leader, commit=True)
    assert leader.last_stable_offset == 0
    assert leader.leader is not None
    leader.isr_decided(State(3, (1,), partition_epoch=1), now_ms=NOW_MS)
    assert leader.last_stable_offset == 2


def test_a_follower_that_is_cut_forgets_the_marker() -> None:
    leader = leading(MemoryDisk())
    write(leader, 0)
    end(leader, commit=True)
    content = leader.log.read(0, 1 << 20, 2)
    assert not isinstance(content, Refusal)
    follower = partition(opened(MemoryDisk()))
    follower.become_follower(1, 3)
    follower.append_as_follower(content.copy(), high_watermark=1, log_start_offset=0, now_ms=NOW_MS)
    assert follower.last_stable_offset == 0
    follower.truncate_as_follower(1, now_ms=NOW_MS)
    assert follower.last_stable_offset == 0
    (producer,) = follower.log.producers
    assert producer.txn_first_offset == 0


def test_a_client_cannot_write_behind_the_marker() -> None:
    leader = leading(MemoryDisk())
    write(leader, 0)
    end(leader, commit=False)
    batch = make_producer_batch(PRODUCER, 1, 1, transactional=True)
    refused = leader.append((batch,), acks=1, now_ms=NOW_MS)
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.INVALID_TXN_STATE
    assert leader.last_stable_offset == 2


def test_only_a_leader_writes_markers() -> None:
    follower = partition(opened(MemoryDisk()))
    refused = follower.append_marker(TxnMarker(PRODUCER, 0, 0, is_commit=True), now_ms=NOW_MS)
    assert isinstance(refused, Refusal)
    assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
