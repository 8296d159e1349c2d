"""A partition of an internal topic, as a coordinator's shard sees it: records in, committed records out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from headrace.coordinator.contract import (
    LogEntry,
    MarkerEntry,
    StoredRecord,
    TxnEntry,
    TxnWriter,
)
from headrace.errors import DiskFailed, HeadraceError, LogClosed
from headrace.log.append_result import Appended
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.records.batch_reader import iterate_batch
from headrace.records.batch_view import BatchHeader, headers_in
from headrace.records.control_batch import ControlType, TxnMarker, read_marker
from headrace.replication.completion import Completion
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal, Refused

_READ_BYTES = 64 * 1024
_MOST_AT_ONCE = 4096  # records: a batch may hold a million


class ShardLogUnreadable(HeadraceError):
    """The partition of a shard refuses to be read up to its end although this broker leads it."""


class PartitionShardLog:
    """`coordinator.contract.ShardLog` over a hosted partition, for as long as it is led in one epoch."""

    def __init__(self, partition: Partition, *, codec: int) -> None:
        self._partition = partition
        self._leader_epoch = partition.leader_epoch
        self._options = BatchOptions(codec=codec)

    @property
    def leader_epoch(self) -> int:
        return self._leader_epoch

    @property
    def high_watermark(self) -> int:
        return self._partition.high_watermark

    def read_from_start(self) -> Iterator[Sequence[LogEntry]]:
        offset, end_offset = (
            self._partition.log.log_start_offset,
            self._partition.log.log_end_offset,
        )
        # Between two chunks DeleteRecords or retention may have moved the start of the log, even to its end.
        while (offset := max(offset, self._partition.log.log_start_offset)) < end_offset:
            self._require_leadership()
            records = self._read(offset, end_offset)
            if not records:
                return  # compaction left no record up to the end
            chunk: list[LogEntry] = []
            for position, header in headers_in(records):
                for entry in _entries(
                    memoryview(records)[position : position + header.size], header
                ):
                    chunk.append(entry)
                    if len(chunk) >= _MOST_AT_ONCE:
                        yield chunk
                        chunk = []
                offset = header.next_offset
            yield chunk

    def _read(self, offset: int, end_offset: int) -> bytes:
        try:
            found = self._partition.log.read(offset, _READ_BYTES, end_offset)
            if isinstance(found, Refusal):
                # Not `Refused`, which closes the shard as if another broker led the partition. Ending here as if the log
                # ended would make committed offsets vanish: the shard must fail.
                raise ShardLogUnreadable(f"{found.error_code.name} while loading: {found.text}")
            return found.copy() if found.length else b""
        except (DiskFailed, LogClosed) as error:
            raise Refused(self._partition.refuse_for_disk(error).error_code) from error

    def append(
        self, records: Sequence[StoredRecord], now_ms: int, writer: TxnWriter | None = None
    ) -> int:
        self._require_leadership()
        options, verified = self._options, None
        if writer is not None:
            verified = writer.verified
            options = replace(
                options,
                producer_id=writer.producer_id,
                producer_epoch=writer.producer_epoch,
                transactional=True,
            )
        batch = build_batch(records_at(0, now_ms, records), options)
        result = self._partition.append(
            (batch,), acks=-1, now_ms=now_ms, from_client=False, verified=verified
        )
        return _next_offset(result)

    def append_marker(self, marker: TxnMarker, now_ms: int) -> int:
        self._require_leadership()
        return _next_offset(self._partition.append_marker(marker, now_ms=now_ms))

    async def wait_committed(self, next_offset: int) -> None:
        self._require_leadership()
        if self._partition.high_watermark >= next_offset:
            return
        refusals: list[ErrorCode] = []
        completion = Completion()
        completion.add(self._partition, next_offset, refusals.append)
        await completion
        # Records that are committed by fewer replicas than they should be are committed.
        if ErrorCode.NOT_LEADER_OR_FOLLOWER in refusals:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _require_leadership(self) -> None:
        if not self._partition.is_leader or self._partition.leader_epoch != self._leader_epoch:
            raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _next_offset(result: Appended | Refusal) -> int:
    if isinstance(result, Refusal):
        raise Refused(result.error_code)
    return result.last_offset + 1


def _entries(batch: memoryview, header: BatchHeader) -> Iterator[LogEntry]:
    if header.is_control:
        if header.record_count:  # compaction leaves an empty batch of what is long over
            control_type, coordinator_epoch = read_marker(batch)
            if control_type in (ControlType.ABORT, ControlType.COMMIT):
                is_commit = control_type == ControlType.COMMIT
                marker = TxnMarker(
                    header.producer_id, header.producer_epoch, coordinator_epoch, is_commit
                )
                yield MarkerEntry(header.base_offset, marker)
    elif header.is_transactional:
        for record in iterate_batch(batch):
            yield TxnEntry(record.offset, record.key, record.value, header.producer_id)
    else:
        for record in iterate_batch(batch):
            yield record.offset, record.key, record.value
