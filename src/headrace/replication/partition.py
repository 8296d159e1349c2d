"""A partition hosted here: a log in a role.

Owns the role, the high watermark and those who wait. Appends are taken only as leader; reads are fenced by leader epoch
and bounded by the high watermark, or by the last stable offset for readers of committed data. A disk that fails is
reported to `on_disk_failed` and answered with KAFKA_STORAGE_ERROR.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

from headrace.errors import CorruptBatch, DiskFailed, DiskFull, LogClosed
from headrace.ids import TopicPartition
from headrace.log.append_result import Appended, Refused
from headrace.log.file_slice import FileSlice
from headrace.log.leader_epochs import UNKNOWN_EPOCH_END, EpochEnd
from headrace.log.partition_log import PartitionLog
from headrace.log.txn_index import AbortedTxn
from headrace.replication.leader import LeaderState
from headrace.replication.waiting import GrowthWaiters, OffsetWaiters
from headrace.wire.error_code import ErrorCode

_logger = logging.getLogger(__name__)

ANY_EPOCH: Final = -1
_NOT_LEADER: Final = Refused(
    ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not lead the partition"
)


class PartitionRead(NamedTuple):
    """What a fetch of one partition yields."""

    records: FileSlice
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[AbortedTxn] | None = None
    diverging: EpochEnd | None = None


class Partition:
    """See the module's text."""

    __slots__ = (
        "_leader",
        "_on_disk_failed",
        "committed",
        "growth",
        "leader_epoch",
        "log",
        "min_insync_replicas",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        log: PartitionLog,
        *,
        min_insync_replicas: int,
        on_disk_failed: Callable[["Partition", DiskFailed], None],
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.min_insync_replicas = min_insync_replicas
        self.leader_epoch = -1
        self.committed = OffsetWaiters()
        self.growth = GrowthWaiters()
        self._leader: LeaderState | None = None
        self._on_disk_failed = on_disk_failed

    # ---- the role

    @property
    def is_leader(self) -> bool:
        """Whether appends are taken here."""
        return self._leader is not None

    @property
    def high_watermark(self) -> int:
        """Everything below is committed."""
        return self.log.log_start_offset if self._leader is None else self._leader.high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Everything below is committed and belongs to no open transaction."""
        unstable = self.log.producers.first_unstable_offset
        high_watermark = self.high_watermark
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def become_leader(
        self, broker_id: int, leader_epoch: int, isr: tuple[int, ...], *, high_watermark: int
    ) -> None:
        """Lead from now on. The epoch is on disk before anything is served under it."""
        self.log.assign_epoch(leader_epoch, self.log.log_end_offset)
        self.leader_epoch = leader_epoch
        known = min(max(high_watermark, self.log.log_start_offset), self.log.log_end_offset)
        self._leader = LeaderState(broker_id, leader_epoch, isr, high_watermark=known)
        self._on_growth(self._leader)

    def resign(self) -> None:
        """No longer lead: the waiting are told so."""
        self._leader = None
        self.committed.dismiss()
        self.growth.notify()

    # ---- writing

    def append(
        self,
        batch: bytearray | memoryview,
        *,
        acks: int,
        now_ms: int,
        from_client: bool = True,
    ) -> Appended | Refused:
        """Take one batch as leader. Committed or not is another question: `committed` knows."""
        leader = self._leader
        if leader is None:
            return _NOT_LEADER
        if acks == -1 and len(leader.isr) < self.min_insync_replicas:
            return Refused(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(leader.isr)} replicas are in sync, min.insync.replicas is {self.min_insync_replicas}",
            )
        try:
            result = self.log.append_as_leader(
                batch, leader_epoch=self.leader_epoch, now_ms=now_ms, from_client=from_client
            )
        except (DiskFailed, LogClosed) as error:
            return self._refuse_for_disk(error)
        if type(result) is Appended and not result.duplicate:
            self._on_growth(leader)
        return result

    def _on_growth(self, leader: LeaderState) -> None:
        if leader.on_append(self.log.log_end_offset):
            self.log.producers.on_high_watermark(leader.high_watermark)
            self.committed.release(leader.high_watermark)
            self.growth.notify()

    def delete_records(self, offset: int) -> int | Refused:
        """Delete everything below `offset` (-1: all that is committed). Returns the new log start offset."""
        if self._leader is None:
            return _NOT_LEADER
        high_watermark = self._leader.high_watermark
        offset = high_watermark if offset == -1 else offset
        if not 0 <= offset <= high_watermark:
            return Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between 0 and the high watermark {high_watermark}",
            )
        self.log.advance_log_start(offset)
        return self.log.log_start_offset

    # ---- reading

    def fence(self, current_leader_epoch: int) -> Refused | None:
        """Whether a request that believes in `current_leader_epoch` may be served here."""
        if self._leader is None:
            return _NOT_LEADER
        if current_leader_epoch in (ANY_EPOCH, self.leader_epoch):
            return None
        if current_leader_epoch < self.leader_epoch:
            return Refused(
                ErrorCode.FENCED_LEADER_EPOCH, f"the leader epoch is {self.leader_epoch} by now"
            )
        return Refused(
            ErrorCode.UNKNOWN_LEADER_EPOCH, f"the leader epoch is still {self.leader_epoch}"
        )

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        current_leader_epoch: int = ANY_EPOCH,
        last_fetched_epoch: int = ANY_EPOCH,
        read_committed: bool = False,
        at_least_one: bool = True,
    ) -> PartitionRead | Refused:
        """Whole batches for a consumer, from the one that holds `offset` on."""
        refused = self.fence(current_leader_epoch)
        if refused is not None:
            return refused
        stable = self.last_stable_offset
        end_offset = stable if read_committed else self.high_watermark
        diverging = self._diverging(offset, last_fetched_epoch)
        if diverging == UNKNOWN_EPOCH_END:
            return Refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"nobody knows where epoch {last_fetched_epoch} ended",
            )
        try:
            records = self.log.read(offset, max_bytes, end_offset, at_least_one=at_least_one)
        except CorruptBatch as error:
            _logger.exception("%s cannot be read at %d", self.topic_partition, offset)
            return Refused(ErrorCode.CORRUPT_MESSAGE, str(error))
        except (DiskFailed, LogClosed) as error:
            return self._refuse_for_disk(error)
        if isinstance(records, Refused):
            return records
        if diverging is not None:
            records = FileSlice(records.file, records.position, 0)
        aborted = self.log.aborted_transactions(offset, stable) if read_committed else None
        return PartitionRead(
            records, self.high_watermark, stable, self.log.log_start_offset, aborted, diverging
        )

    def _diverging(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        if last_fetched_epoch < 0:
            return None
        end = self.log.leader_epochs.end_offset_for(last_fetched_epoch, self.log.log_end_offset)
        return end if end.epoch < last_fetched_epoch or end.end_offset < offset else None

    def _refuse_for_disk(self, error: DiskFailed | LogClosed) -> Refused:
        if isinstance(error, DiskFull):
            _logger.error(
                "%s: %s; writes are refused until there is room", self.topic_partition, error
            )
        elif isinstance(error, DiskFailed):
            self._on_disk_failed(self, error)
        return Refused(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
