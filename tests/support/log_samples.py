"""Batches and logs for tests: short ways to say what a test is about."""

from headrace.ids import TopicPartition
from headrace.log.append_result import Appended
from headrace.log.files.disk import Disk
from headrace.log.files.file_slice import FileSlice
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.producers.producer_state import NOT_VERIFIED, ProducerState
from headrace.log.recovery import Checkpointed, open_log
from headrace.records.batch_builder import PLAIN, BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import headers_in
from headrace.records.control_batch import ControlType, build_marker
from headrace.wire.refusal import Refusal

NOW_MS = 1_700_000_000_000
TOPIC_PARTITION = TopicPartition("t", 0)
DIRECTORY = "/data/t-0"


def make_batch(
    count: int = 1,
    *,
    timestamp: int = NOW_MS,
    value: bytes = b"value",
    options: BatchOptions = PLAIN,
) -> bytearray:
    """Records with one timestamp, keys `k0`, `k1` ... and one value."""
    return build_batch(
        [Record(step, timestamp, b"k%d" % step, value) for step in range(count)], options
    )


def make_producer_batch(
    producer_id: int,
    sequence: int,
    count: int = 1,
    *,
    epoch: int = 0,
    transactional: bool = False,
    codec: int = 0,
    timestamp: int = NOW_MS,
) -> bytearray:
    """A batch of an idempotent or transactional producer."""
    options = BatchOptions(
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )
    return make_batch(count, timestamp=timestamp, options=options)


def make_marker(
    control_type: ControlType, producer_id: int, *, epoch: int = 0, coordinator_epoch: int = 0
) -> bytearray:
    """A commit or abort marker."""
    return build_marker(
        control_type,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=NOW_MS,
    )


def try_append(
    log: PartitionLog, batch: bytearray, *, leader_epoch: int = 0, now_ms: int = NOW_MS
) -> Appended | Refusal:
    """Append as a leader; control batches come from a coordinator, others from a client."""
    is_control = next(headers_in(batch))[1].is_control
    return log.append_as_leader(
        [batch],
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        from_client=not is_control,
        verified=NOT_VERIFIED,
    )


def append(
    log: PartitionLog, batch: bytearray, *, leader_epoch: int = 0, now_ms: int = NOW_MS
) -> Appended:
    """Append a batch that must be taken."""
    appended = try_append(log, batch, leader_epoch=leader_epoch, now_ms=now_ms)
    assert isinstance(appended, Appended), appended
    return appended


def open_sample(
    disk: Disk,
    config: LogConfig | None = None,
    *,
    directory: str = DIRECTORY,
    clean: bool = False,
    recovery_point: int = 0,
    log_start_offset: int = 0,
) -> PartitionLog:
    """Open or create the sample log."""
    return open_log(
        disk,
        directory,
        TOPIC_PARTITION,
        config or LogConfig(),
        now_ms=NOW_MS,
        checkpointed=Checkpointed(
            clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset
        ),
    )


def read_slice(
    log: PartitionLog, offset: int, max_bytes: int = 1 << 30, end_offset: int | None = None
) -> FileSlice:
    """A read that must not be refused."""
    found = log.read(offset, max_bytes, log.log_end_offset if end_offset is None else end_offset)
    assert isinstance(found, FileSlice), found
    return found


def stored_batches(log: PartitionLog) -> list[bytes]:
    """Every batch from the log's start to its end, as stored."""
    batches: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        content = read_slice(log, offset).copy()
        assert content, f"nothing at {offset}, before the end {log.log_end_offset}"
        for position, header in headers_in(content):
            batches.append(content[position : position + header.size])
            offset = header.next_offset
    return batches


def stored_records(log: PartitionLog) -> list[Record]:
    """Every record, deleted ones at the front left out."""
    records = [record for batch in stored_batches(log) for record in read_batch(batch)]
    return [record for record in records if record.offset >= log.log_start_offset]


def producers_of(state: ProducerState) -> dict[int, tuple[int | None, ...]]:
    """What must be the same after a restart: all but the older of the remembered batches."""
    return {
        entry.producer_id: (
            entry.epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.txn_first_offset,
        )
        for entry in state
    }
