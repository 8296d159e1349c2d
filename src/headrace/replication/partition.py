"""One replica of a partition on this broker: a log in the role of leader or follower.

Owns the role, the high watermark and the waiting requests. Only a leader appends; reads are fenced by leader epoch
and bounded by the high watermark, or by the last stable offset for readers of committed data. A disk that fails is
reported to `on_disk_failed` and answered with KAFKA_STORAGE_ERROR.
"""

import logging
from collections.abc import Callable, Container, Sequence
from typing import Final
from uuid import UUID

from headrace.coordination.lease import ENDLESS, SessionLease
from headrace.errors import CorruptBatch, DiskFailed, DiskFull, LogClosed
from headrace.ids import TopicPartition
from headrace.log.append_check import Opened
from headrace.log.append_result import Appended
from headrace.log.files.file_slice import FileSlice
from headrace.log.leader_epochs import UNKNOWN_EPOCH_END, EpochEnd
from headrace.log.partition_log import PartitionLog
from headrace.log.producers.producer_state import BATCHES_KEPT, Verification
from headrace.records.batch_view import BatchHeader
from headrace.records.control_batch import ControlType, TxnMarker, build_marker
from headrace.replication.disk_full_notice import DiskFullNotice
from headrace.replication.fencing import ANY_EPOCH, refuse_epoch
from headrace.replication.follower import NO_LOSS, LossyEpochs
from headrace.replication.leader import LeaderState, PartitionAssignment
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.replication.waiting import ChangeWaiters, OffsetWaiters
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

_logger = logging.getLogger(__name__)

NOT_LEADER: Final = Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker does not lead here")


class Partition:
    """One replica of a partition on this broker."""

    __slots__ = (
        "_disk_full_notice",
        "_high_watermark",
        "_leader",
        "_lease",
        "_on_disk_failed",
        "_suspended",
        "_unfollowable",
        "append_waiters",
        "committed",
        "gap_check",
        "high_watermark_waiters",
        "is_of_other_history",
        "leader_epoch",
        "leader_id",
        "log",
        "log_starts",
        "lossy_epochs",
        "seen_epoch",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        topic_id: UUID,
        log: PartitionLog,
        *,
        high_watermark: int,
        on_disk_failed: Callable[["Partition", DiskFailed], None],
        lease: SessionLease = ENDLESS,
        seen_epoch: int = -1,
    ) -> None:
        """`lease`: past its end nothing is appended as leader, because another leader may have been elected.

        `seen_epoch`: the newest leader epoch of which this replica was told, by a checkpoint.
        """
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = -1
        self.leader_id = -1
        self.seen_epoch = seen_epoch  # of the history that the log belongs to
        self.is_of_other_history = False
        self.lossy_epochs = NO_LOSS
        self._unfollowable: str | None = None
        self.gap_check: int | None = (
            None  # where the leader's log is read to learn whether it has a gap there (`following`)
        )
        self.committed = OffsetWaiters()
        self.high_watermark_waiters = ChangeWaiters()  # of what is committed
        self.append_waiters = ChangeWaiters()  # of the log
        self.log_starts = (
            ChangeWaiters()
        )  # of the followers' log start offsets, as the leader knows them
        self._leader: LeaderState | None = None
        self._suspended: LeaderState | None = None
        self._on_disk_failed = on_disk_failed
        self._lease = lease
        self._disk_full_notice = DiskFullNotice(topic_partition)
        self._high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        # Markers that were read again when the log was opened are committed as far as the checkpoint says.
        log.producers.on_high_watermark(self._high_watermark)

    # ---- the role

    @property
    def is_leader(self) -> bool:
        """Whether this replica is the leader."""
        return self._leader is not None

    @property
    def leader(self) -> LeaderState | None:
        """The leader state, if this broker leads."""
        return self._leader

    @property
    def high_watermark(self) -> int:
        """Everything below is committed, as far as this broker knows."""
        return self._high_watermark

    @property
    def last_stable_offset(self) -> int:
        """Everything below is committed and belongs to no open transaction."""
        unstable = self.log.producers.first_unstable_offset
        if unstable is None:
            return self._high_watermark
        # A transaction of which DeleteRecords has deleted the start does not hold readers back below the log start.
        return min(max(unstable, self.log.log_start_offset), self._high_watermark)

    def become_leader(self, broker_id: int, state: PartitionAssignment, *, now_ms: int) -> None:
        """Become leader. The leader epoch is on disk before a request is served under it."""
        self.log.assign_epoch(state.leader_epoch, self.log.log_end_offset)
        self.leader_epoch, self.leader_id = state.leader_epoch, broker_id
        self._agree()
        self._leader = LeaderState(
            broker_id, state, log_end_offset=self.log.log_end_offset, now_ms=now_ms
        )
        self._advance()

    def become_follower(
        self,
        leader_id: int,
        leader_epoch: int,
        lossy_epochs: LossyEpochs = NO_LOSS,
        *,
        is_of_other_history: bool = False,
    ) -> None:
        """Become follower; -1 is no leader. Waiting requests are answered with NOT_LEADER_OR_FOLLOWER.

        `is_of_other_history`: this replica knows of a leader epoch that the leader's coordination store has never given out.
        """
        self.leader_epoch, self.leader_id = leader_epoch, leader_id
        self.lossy_epochs = lossy_epochs
        self.is_of_other_history, self._unfollowable = is_of_other_history, None
        self.gap_check = None
        if not is_of_other_history:
            self._agree()
        self.resign()

    def _agree(self) -> None:
        """The log belongs to the history of the present leader epoch."""
        self.is_of_other_history = False
        self._unfollowable = self.gap_check = None
        self.seen_epoch = self.leader_epoch

    @property
    def newest_epoch(self) -> int:
        """The newest leader epoch that this replica knows of."""
        return max(self.seen_epoch, self.log.leader_epochs.latest)

    @property
    def unfollowable(self) -> str | None:
        """Why this replica does not follow its leader, for operators; None if it does."""
        return self._unfollowable

    def refuse_leader(self, reason: str) -> None:
        """Do not follow the leader until an operator has looked at it. `reason` is logged once."""
        if self._unfollowable is None:
            self._unfollowable = reason
            _logger.error("%s %s", self.topic_partition, reason)

    def suspend(self) -> None:
        """Do not act as leader until `resume`. A proposed ISR stays in force."""
        leader = self._leader
        self.resign()
        self._suspended = leader

    def resume(self, *, now_ms: int) -> bool:
        """Lead again in the same leader epoch after `suspend`. Returns whether leadership was suspended."""
        leader, self._suspended = self._suspended, None
        if leader is None:
            return False
        self._leader = leader
        leader.give_time(now_ms)
        self._advance()
        self.high_watermark_waiters.notify()
        return True

    def resign(self) -> None:
        """No longer lead."""
        self._leader = self._suspended = None
        self.committed.dismiss()
        self.high_watermark_waiters.notify()
        self.append_waiters.notify()
        self.log_starts.notify()

    def isr_decided(self, state: PartitionAssignment, *, now_ms: int) -> None:
        """Adopt the controller's newest decision on replicas, ISR and min.insync.replicas, within the same leader epoch."""
        leader = self._leader or self._suspended
        if leader is not None and state.leader_epoch == self.leader_epoch:
            leader.decided(state, now_ms=now_ms)
            self._advance()
            self.log_starts.notify()  # one that held the low watermark back may be gone

    def _advance(self) -> None:
        """Move the high watermark to the committed offset and release waiting requests. It never goes back."""
        leader = self._leader
        if leader is None:
            return
        committed = leader.committed_offset(self.log.log_end_offset)
        if committed > self._high_watermark:
            self._high_watermark = committed
            self.log.producers.on_high_watermark(committed)
            self.committed.release(committed)
            self.high_watermark_waiters.notify()

    @property
    def knows_what_is_committed(self) -> bool:
        """Whether the high watermark has reached where this leader's epoch began: until then more may be committed.

        True for a follower, which tells what its leader told.
        """
        leader = self._leader
        return leader is None or self._high_watermark >= leader.epoch_start_offset

    def next_isr(self, *, now_ms: int, max_lag_ms: int) -> tuple[int, ...] | None:
        """The ISR that this leader should propose now; None if the present one is right or a change is under way."""
        leader = self._leader
        if leader is None:
            return None
        return leader.next_isr(
            log_end_offset=self.log.log_end_offset,
            high_watermark=self._high_watermark,
            now_ms=now_ms,
            max_lag_ms=max_lag_ms,
        )

    # ---- writing

    def append(
        self,
        batches: Sequence[bytearray | memoryview],
        headers: Sequence[BatchHeader] = (),
        *,
        acks: int,
        now_ms: int,
        from_client: bool = True,
        opened: Opened | None = None,
        verified: Verification | None = None,
    ) -> Appended | Refusal:
        """Append the first batches of a list as leader; `PartitionLog.append_as_leader` says how many.

        Whether they are committed is another question: `committed` knows.
        """
        leader = self._leader
        if leader is None or self._lease.is_over():
            return NOT_LEADER
        if acks == -1 and not leader.has_min_isr:
            text = f"{len(leader.isr)} replicas are in sync, {leader.needed_isr} are needed"
            return Refusal(ErrorCode.NOT_ENOUGH_REPLICAS, text)
        try:
            result = self.log.append_as_leader(
                batches,
                headers,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                from_client=from_client,
                opened=opened,
                verified=verified,
            )
        except (DiskFailed, LogClosed) as error:
            self._count_if_written(error)
            return self.refuse_for_disk(error, now_ms=now_ms)
        if type(result) is Appended and not result.duplicate:
            if self._disk_full_notice.is_refusing:
                self._disk_full_notice.accepted()
            self._advance()
            self.append_waiters.notify()
        return result

    def append_marker(self, marker: TxnMarker, *, now_ms: int) -> Appended | Refusal:
        """End a producer's transaction here, as its coordinator says. A marker may be repeated."""
        refused = self.log.producers.check_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            has_epoch_bump=marker.has_epoch_bump,
        )
        if self._leader is not None and refused is not None:
            return refused
        batch = build_marker(
            ControlType.COMMIT if marker.is_commit else ControlType.ABORT,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
        )
        return self.append((batch,), acks=-1, now_ms=now_ms, from_client=False)

    def is_overtaking(self, batch: BatchHeader) -> bool:
        """Whether batches are missing before this one that its producer may have sent to another leader.

        Only the first batches of a producer in a leader epoch can be: as many as are kept of a producer.
        """
        if self.leader_epoch == 0 or batch.base_sequence <= 0 or self._leader is None:
            return False
        producer = self.log.producers.entry(batch.producer_id)
        if producer is None:
            return True
        kept = producer.batches
        if kept and kept[-1].last_sequence + 1 == batch.base_sequence:
            return False
        return self.log.producers.is_behind_gap(batch) and (
            len(kept) < BATCHES_KEPT
            or producer.epoch != batch.producer_epoch
            or self.log.leader_epochs.epoch_at(kept[0].last_offset) < self.leader_epoch
        )

    def _count_if_written(self, error: DiskFailed | LogClosed) -> None:
        """A refused batch is in the log if the flush behind its write was refused. The producer's retry is a duplicate then."""
        if isinstance(error, DiskFull):
            self._advance()
            self.append_waiters.notify()

    def append_as_follower(
        self,
        records: bytes | memoryview,
        *,
        high_watermark: int,
        log_start_offset: int,
        now_ms: int,
    ) -> None:
        """Append batches as the leader sent them. Raises CorruptBatch, DiskFailed."""
        assert self._leader is None, f"{self.topic_partition} leads and follows"
        if self.is_of_other_history or self._unfollowable is not None:
            self._agree()  # up to here it has the records of the leader
        if len(records):
            self.log.append_as_follower(records, now_ms=now_ms)
            self._disk_full_notice.accepted()
        committed = min(high_watermark, self.log.log_end_offset)
        if committed > self._high_watermark:
            self._high_watermark = committed
            self.log.producers.on_high_watermark(committed)
            self.high_watermark_waiters.notify()
        if self.log.log_start_offset < log_start_offset <= self._high_watermark:
            self.log.advance_log_start(log_start_offset)

    def truncate_as_follower(self, offset: int, *, now_ms: int) -> None:
        """Truncate the log to where it agrees with the leader's."""
        assert self._leader is None, f"{self.topic_partition} leads and is cut"
        name, committed = self.topic_partition, self._high_watermark
        if self.log.log_start_offset == self.log.log_end_offset:
            # The leader's log starts inside a batch, of which the whole is taken.
            _logger.info("%s, which is empty, begins at %d instead of %d", name, offset, committed)
        elif offset < committed:
            _logger.warning("%s is cut at %d, but %d is committed", name, offset, committed)
            self.log.note_truncation(offset, checkpointed=committed)
        self.log.truncate_to(offset, now_ms=now_ms)
        self._high_watermark = min(self._high_watermark, self.log.log_end_offset)
        self.log.producers.on_high_watermark(self._high_watermark)  # they were built again

    def start_again_at(self, offset: int, *, now_ms: int) -> None:
        """Empty the log and go on at the leader's log start offset, because the leader has deleted the next records."""
        assert self._leader is None, f"{self.topic_partition} leads and is emptied"
        self.log.truncate_fully_and_start_at(offset, now_ms=now_ms)
        self._high_watermark = offset

    def delete_records(self, offset: int) -> int | Refusal:
        """Delete everything below `offset` (-1: all that is committed). Returns the offset that -1 stood for.

        The followers that wait for records are woken, because they delete when they hear of the new log start offset.
        """
        if self._leader is None or self._lease.is_over():
            return NOT_LEADER
        high_watermark = self._high_watermark
        offset = high_watermark if offset == -1 else offset
        if not 0 <= offset <= high_watermark:
            return Refusal(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between 0 and the high watermark {high_watermark}",
            )
        if offset > self.log.log_start_offset:
            self.log.advance_log_start(offset)
            self.append_waiters.notify()
        return offset

    def low_watermark(self, live: Container[int]) -> int | None:
        """The least durable log start offset among the replicas on live brokers; None if this broker does not lead."""
        leader = self._leader
        return None if leader is None else leader.low_watermark(self.log.durable_start, live)

    # ---- reading

    def fence(self, current_leader_epoch: int, *, by_follower: bool = False) -> Refusal | None:
        """The refusal of a request that names another leader epoch; None if it may be served here."""
        if self._leader is None and not (by_follower and self.leader_id >= 0):
            return NOT_LEADER
        return refuse_epoch(current_leader_epoch, self.leader_epoch)

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        current_leader_epoch: int = ANY_EPOCH,
        last_fetched_epoch: int = ANY_EPOCH,
        read_committed: bool = False,
        at_least_one: bool = True,
        by_follower: bool = False,
    ) -> PartitionRead | Refusal:
        """Whole batches for a consumer, from the one that holds `offset` on; from a follower if it may be one."""
        refused = self.fence(current_leader_epoch, by_follower=by_follower)
        if refused is not None:
            return refused
        if self._leader is None and offset > self.log.log_end_offset:
            # The leader may have this offset, so a consumer must wait and not reset its position.
            return Refusal(ErrorCode.OFFSET_NOT_AVAILABLE, f"{offset} has not arrived here yet")
        stable = self.last_stable_offset
        end_offset = stable if read_committed else self.high_watermark
        found = self._read(
            offset, last_fetched_epoch, max_bytes, end_offset, at_least_one=at_least_one
        )
        if isinstance(found, Refusal):
            return found
        try:
            aborted = self.log.aborted_in(found[0], offset, stable) if read_committed else None
        except (DiskFailed, LogClosed) as error:
            return self.refuse_for_disk(error)
        return PartitionRead(
            found[0], self.high_watermark, stable, self.log.log_start_offset, aborted, found[1]
        )

    def read_as_leader(
        self,
        follower: FollowerFetch,
        max_bytes: int,
        *,
        now_ms: int,
        at_least_one: bool = True,
    ) -> PartitionRead | Refusal:
        """Whole batches for a follower, up to the log's end. What it asks for tells what it has."""
        refused = self.fence(follower.current_leader_epoch)
        if refused is not None:
            return refused
        leader = self._leader
        assert leader is not None
        offset, log = follower.fetch_offset, self.log
        found = self._read(
            offset,
            follower.last_fetched_epoch,
            max_bytes,
            log.log_end_offset,
            at_least_one=at_least_one,
        )
        if isinstance(found, Refusal):
            return found
        records, diverging = found
        if diverging is None:
            leader.on_follower_fetch(
                follower.replica_id,
                offset,
                log_end_offset=log.log_end_offset,
                broker_epoch=follower.broker_epoch,
                now_ms=now_ms,
                log_start_offset=follower.log_start_offset,
            )
            self._advance()
            if self.log_starts:
                self.log_starts.notify()
        stable = self.last_stable_offset
        return PartitionRead(
            records, self._high_watermark, stable, log.log_start_offset, None, diverging
        )

    def _read(
        self,
        offset: int,
        last_fetched_epoch: int,
        max_bytes: int,
        end_offset: int,
        *,
        at_least_one: bool,
    ) -> tuple[FileSlice, EpochEnd | None] | Refusal:
        """The batches, or none of them and where the reader's history leaves ours."""
        diverging = self._diverging(offset, last_fetched_epoch)
        if diverging == UNKNOWN_EPOCH_END:
            # An unknown end offset must not make a follower truncate its log.
            story = f"nobody here knows where epoch {last_fetched_epoch} ended"
            return Refusal(ErrorCode.OFFSET_OUT_OF_RANGE, story)
        if diverging is not None:
            # Past our end is not out of range then: it is how a tail that we never had shows itself.
            offset = min(offset, self.log.log_end_offset)
            max_bytes, at_least_one = 0, False
        try:
            records = self.log.read(offset, max_bytes, end_offset, at_least_one=at_least_one)
        except CorruptBatch as error:
            _logger.exception("%s cannot be read at %d", self.topic_partition, offset)
            return Refusal(ErrorCode.CORRUPT_MESSAGE, str(error))
        except (DiskFailed, LogClosed) as error:
            return self.refuse_for_disk(error)
        return records if isinstance(records, Refusal) else (records, diverging)

    def _diverging(self, offset: int, last_fetched_epoch: int) -> EpochEnd | None:
        if last_fetched_epoch < 0:
            return None
        end = self.log.leader_epochs.end_offset_for(last_fetched_epoch, self.log.log_end_offset)
        return end if end.epoch < last_fetched_epoch or end.end_offset < offset else None

    @property
    def disk_full_since_ms(self) -> int | None:
        """Since when appends are refused because the disk is full; None if the last one was accepted."""
        return self._disk_full_notice.since_ms

    def refuse_for_disk(self, error: DiskFailed | LogClosed, *, now_ms: int = 0) -> Refusal:
        """The refusal after the disk failed under this partition. Its log directory goes offline, unless the disk is only full.

        `now_ms`: the time of a write. A full disk refuses no read.
        """
        if isinstance(error, DiskFull):
            self._disk_full_notice.refused(error, now_ms)
        elif isinstance(error, DiskFailed):
            self._on_disk_failed(self, error)
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
