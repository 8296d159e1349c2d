"""The log against a plain list of batches, through whatever can happen to it."""

from random import Random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.errors import DiskFull
from headrace.log.append_result import Appended
from headrace.log.leader_epochs import EpochEntry, LeaderEpochs
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.retention import delete_old_segments
from headrace.log.steps import run_at_once
from headrace.log.time_lookup import FoundTimestamp, first_at_or_after, with_max_timestamp
from headrace.records.batch_builder import BatchOptions
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import read_header
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType
from headrace.testing.memory_disk import MemoryDisk
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal
from tests.support.log_samples import (
    NOW_MS,
    make_batch,
    make_marker,
    make_producer_batch,
    open_sample,
    producers_of,
    read_slice,
    stored_batches,
    try_append,
)

PRODUCERS = (101, 102, 103)
CONFIG = LogConfig(
    segment_bytes=1500,
    index_interval_bytes=200,
    segment_index_bytes=48,
    retention_bytes=3000,
    file_delete_delay_ms=10,
)


class Producer:
    """What a well-behaved idempotent or transactional producer knows of itself."""

    def __init__(self) -> None:
        self.epoch = 0
        self.sequence = 0
        self.in_transaction = False


class LogMachine(RuleBasedStateMachine):
    """`batches` is the model: what was appended, stamped, with what is deleted at the front still in it."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()
        self.disk.make_directory("/data")
        self.disk.sync_directory("/")
        self.log: PartitionLog = open_sample(self.disk, CONFIG)
        self.disk.sync_directory("/data")
        self.batches: list[bytes] = []
        self.start_offset = 0
        self.first_offset = 0  # nothing before it was ever in the log
        self.durable_offset = 0
        self.leader_epoch = 0
        self.known_epochs_from = 0
        self.now_ms = NOW_MS
        self.producers = {producer_id: Producer() for producer_id in PRODUCERS}
        self.steps = 0
        self.checkpointed = (0, 0)  # recovery point and log start, as written last

    @property
    def end_offset(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else self.first_offset

    # ---- appending

    def _append(self, batch: bytearray) -> Appended:
        appended = try_append(self.log, batch, leader_epoch=self.leader_epoch, now_ms=self.now_ms)
        assert isinstance(appended, Appended), appended
        if not appended.duplicate:
            assert appended.base_offset == self.end_offset
            self.batches.append(bytes(batch))
            if self.log.recovery_point == self.log.log_end_offset:
                self.durable_offset = self.end_offset
        return appended

    @rule(
        count=st.integers(1, 6),
        codec=st.sampled_from(Codec),
        value=st.binary(max_size=300),
        step_ms=st.integers(-50, 200),
    )
    def append_plain(self, count: int, codec: Codec, value: bytes, step_ms: int) -> None:
        self.now_ms += abs(step_ms)
        self._append(
            make_batch(
                count,
                timestamp=self.now_ms + min(step_ms, 0) * 3,
                value=value,
                options=BatchOptions(codec=codec),
            )
        )

    @rule(
        producer_id=st.sampled_from(PRODUCERS), count=st.integers(1, 4), transactional=st.booleans()
    )
    def append_idempotent(self, producer_id: int, count: int, transactional: bool) -> None:
        producer = self.producers[producer_id]
        transactional = transactional or producer.in_transaction
        batch = make_producer_batch(
            producer_id,
            producer.sequence,
            count,
            epoch=producer.epoch,
            transactional=transactional,
            timestamp=self.now_ms,
        )
        first = self._append(bytearray(batch))
        retried = try_append(self.log, bytearray(batch), leader_epoch=self.leader_epoch)
        assert isinstance(retried, Appended)
        assert retried.duplicate
        assert retried[:2] == first[:2]
        producer.sequence += count
        producer.in_transaction = transactional

    @rule(producer_id=st.sampled_from(PRODUCERS), ahead=st.integers(1, 3))
    def append_out_of_order(self, producer_id: int, ahead: int) -> None:
        producer = self.producers[producer_id]
        known = self.log.producers.entry(producer_id)
        batch = make_producer_batch(
            producer_id, producer.sequence + ahead, epoch=producer.epoch, transactional=True
        )
        if known is not None:
            refused = try_append(self.log, batch, leader_epoch=self.leader_epoch)
            assert isinstance(refused, Refusal)
            assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(
        producer_id=st.sampled_from(PRODUCERS),
        control_type=st.sampled_from(ControlType),
        bump=st.booleans(),
    )
    def end_transaction(self, producer_id: int, control_type: ControlType, bump: bool) -> None:
        producer = self.producers[producer_id]
        if producer.in_transaction:
            if bump:
                producer.epoch += 1
                producer.sequence = 0
            self._append(make_marker(control_type, producer_id, epoch=producer.epoch))
            producer.in_transaction = False

    @rule()
    def append_with_full_disk(self) -> None:
        self.disk.capacity_bytes = self.disk.used_bytes + 60
        with pytest.raises(DiskFull):
            self.log.append_as_leader(
                [make_batch()], leader_epoch=self.leader_epoch, now_ms=self.now_ms
            )
        self.disk.capacity_bytes = None

    @rule(room=st.integers(0, 300))
    def roll_with_full_disk(self, room: int) -> None:
        self.disk.capacity_bytes = self.disk.used_bytes + room
        with pytest.raises(DiskFull):
            self.log.append_as_leader(
                [make_batch(value=bytes(1400))], leader_epoch=self.leader_epoch, now_ms=self.now_ms
            )
        self.disk.capacity_bytes = None

    @rule(by=st.integers(1, 3))
    def change_leader(self, by: int) -> None:
        self.leader_epoch += by

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)
        self.log.segments.active.created_ms = self.now_ms

    # ---- cutting

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        span = self.end_offset - self.start_offset
        offset = self.start_offset + round(where * (span + 2))
        self.log.truncate_to(offset, now_ms=self.now_ms)
        while self.batches and self.end_offset > offset:
            self.batches.pop()
        self.start_offset = min(self.start_offset, self.end_offset)
        self.durable_offset = min(self.durable_offset, self.end_offset)
        self._resume_producers()

    @rule(offset=st.integers(0, 500))
    def truncate_fully(self, offset: int) -> None:
        self.log.truncate_fully_and_start_at(offset, now_ms=self.now_ms)
        self.batches.clear()
        self.start_offset = self.first_offset = self.durable_offset = offset
        self.known_epochs_from = offset
        self._resume_producers()

    @rule(where=st.floats(0, 1))
    def delete_records(self, where: float) -> None:
        self.start_offset += round(where * (self.end_offset - self.start_offset))
        self.log.advance_log_start(self.start_offset)

    @rule(where=st.floats(0, 1))
    def retain(self, where: float) -> None:
        high_watermark = self.start_offset + round(where * (self.end_offset - self.start_offset))
        delete_old_segments(self.log, high_watermark=high_watermark, now_ms=self.now_ms)
        assert self.start_offset <= self.log.log_start_offset
        assert self.log.log_start_offset <= max(high_watermark, self.start_offset)
        self.start_offset = self.log.log_start_offset

    @rule(later_ms=st.integers(0, 20))
    def remove_deleted_files(self, later_ms: int) -> None:
        self.now_ms += later_ms
        for path in self.log.removable(self.now_ms):
            assert path.endswith(".deleted")
            self.disk.remove(path)

    # ---- stopping and starting

    @rule()
    def flush(self) -> None:
        self.log.flush(self.now_ms)
        self.durable_offset = self.end_offset
        assert self.log.recovery_point == self.end_offset

    def _log_start_checkpoint(self) -> int:
        return self.start_offset if self.start_offset > self.log.segments.first.base_offset else 0

    @rule()
    def checkpoint(self) -> None:
        """As the owner of the directory does every few seconds."""
        self.checkpointed = (self.log.recovery_point, self._log_start_checkpoint())
        truncation = self.log.truncation
        if truncation is not None:
            self.log.forget_truncation(truncation)

    @rule()
    def close_and_open(self) -> None:
        before = self._state()
        self.log.close(self.now_ms)
        self.checkpoint()
        self.log = open_sample(self.disk, CONFIG, clean=True, log_start_offset=self.checkpointed[1])
        self.durable_offset = self.end_offset
        assert self._state() == before

    @rule(from_start=st.booleans())
    def kill_and_open(self, from_start: bool) -> None:
        """A killed process loses nothing that it wrote."""
        before = self._state()
        self.checkpoint()
        self._open_after_crash(from_start)
        self.durable_offset = max(self.durable_offset, self.log.recovery_point)
        assert self._state() == before

    @rule(from_start=st.booleans())
    def kill_and_open_with_old_checkpoints(self, from_start: bool) -> None:
        end_offset, durable_offset = self.end_offset, self.durable_offset
        self._open_after_crash(from_start)
        assert self.log.log_end_offset == end_offset
        self._adopt()
        self.durable_offset = durable_offset

    @rule(
        seed=st.integers(0, 2**32),
        closed=st.booleans(),
        from_start=st.booleans(),
        checkpointed=st.booleans(),
    )
    def lose_power_and_open(
        self, seed: int, closed: bool, from_start: bool, checkpointed: bool
    ) -> None:
        """What was flushed is there, what was not is there up to some batch, and nothing else is."""
        if closed:
            self.log.close(self.now_ms)
            self.durable_offset = self.end_offset
        if closed or checkpointed:
            self.checkpoint()
        self.disk.crash(Random(seed))
        if closed:
            log_start_offset = self.checkpointed[1]
            self.log = open_sample(self.disk, CONFIG, clean=True, log_start_offset=log_start_offset)
        else:
            self._open_after_crash(from_start)
        self._adopt()

    def _open_after_crash(self, from_start: bool) -> None:
        recovery_point, log_start_offset = self.checkpointed
        self.log = open_sample(
            self.disk,
            CONFIG,
            recovery_point=0 if from_start else recovery_point,
            log_start_offset=log_start_offset,
        )

    def _adopt(self) -> None:
        """Take what a crash has left, if it may be so, for what was written."""
        end_offset = self.log.log_end_offset
        assert self.durable_offset <= end_offset <= self.end_offset
        if self.log.segments.first.base_offset == end_offset:
            self.batches.clear()
            self.first_offset = end_offset
        while self.batches and self.end_offset > end_offset:
            self.batches.pop()
        assert self.end_offset == end_offset
        assert self.log.log_start_offset <= self.start_offset or not self.batches
        # Deleted segments may be back, without their epochs.
        self.known_epochs_from = max(self.known_epochs_from, self.start_offset)
        self.start_offset = self.log.log_start_offset
        self.durable_offset = end_offset
        self._resume_producers()

    def _state(self) -> tuple[object, ...]:
        return (
            self.log.log_start_offset,
            self.log.log_end_offset,
            self._written_epochs(),
            producers_of(self.log.producers),
            self.log.aborted_transactions(self.log.log_start_offset, self.log.log_end_offset),
            self.log.segments.active.base_offset,
        )

    def _resume_producers(self) -> None:
        """Producers learn where the log stands, as they would from their coordinator with a new epoch."""
        for producer_id, producer in self.producers.items():
            entry = self.log.producers.entry(producer_id)
            producer.in_transaction = entry is not None and entry.txn_first_offset is not None
            producer.epoch = 0 if entry is None else entry.epoch
            producer.sequence = 0 if entry is None else entry.last_sequence + 1

    # ---- what always holds

    @invariant()
    def bounds_agree(self) -> None:
        self.steps += 1
        assert self.log.log_start_offset == self.start_offset
        assert self.log.log_end_offset == self.end_offset
        assert self.log.recovery_point <= self.end_offset

    def _readable(self) -> list[bytes]:
        return [b for b in self.batches if read_header(b).last_offset >= self.start_offset]

    @invariant()
    def everything_is_there(self) -> None:
        assert stored_batches(self.log) == self._readable()

    @invariant()
    def reads_agree(self) -> None:
        chance = Random(self.steps)
        for _ in range(5):
            offset = chance.randint(self.start_offset, self.end_offset)
            end_offset = chance.randint(offset, self.end_offset)
            max_bytes = chance.choice((0, 1, 100, 300, 1000, 5000))
            self._check_read(offset, max_bytes, end_offset)

    def _check_read(self, offset: int, max_bytes: int, end_offset: int) -> None:
        found = read_slice(self.log, offset, max_bytes, end_offset)
        assert bytes(found.view()) == found.copy()
        wanted = [
            batch
            for batch in self.batches
            if read_header(batch).last_offset >= offset
            and read_header(batch).next_offset <= end_offset
        ]
        content = b"".join(wanted)
        assert content.startswith(found.copy())
        if wanted:
            assert found.length >= len(wanted[0])
            assert found.length == len(wanted[0]) or found.length <= max_bytes
        outside = self.log.read(self.end_offset + 1, max_bytes, self.end_offset + 2)
        assert isinstance(outside, Refusal)
        assert outside.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    @invariant()
    def epochs_agree(self) -> None:
        expected = LeaderEpochs()
        for batch in self.batches:
            header = read_header(batch)
            expected.assign(header.leader_epoch, header.base_offset)
        assert self._written_epochs() == self._trusted(expected)

    def _written_epochs(self) -> tuple[EpochEntry, ...]:
        """A leader may have announced itself and written nothing yet; that need not survive a restart."""
        return self._trusted(LeaderEpochs(self.log.leader_epochs.entries))

    def _trusted(self, epochs: LeaderEpochs) -> tuple[EpochEntry, ...]:
        epochs.truncate_from_start(max(self.start_offset, self.known_epochs_from))
        epochs.truncate_from_end(self.end_offset)
        return epochs.entries

    def _records(self) -> list[tuple[Record, int]]:
        return [
            (record, read_header(batch).leader_epoch)
            for batch in self._readable()
            for record in read_batch(batch)
            if record.offset >= self.start_offset
        ]

    @invariant()
    def times_agree(self) -> None:
        chance = Random(self.steps)
        records = self._records()
        times = [record.timestamp for record, _ in records]
        asked = chance.choice(times) + chance.choice((-1, 0, 1)) if times else NOW_MS
        expected = next(
            (
                FoundTimestamp(record.timestamp, record.offset, epoch)
                for record, epoch in records
                if record.timestamp >= asked
            ),
            None,
        )
        assert run_at_once(first_at_or_after(self.log, asked)) == expected
        newest = run_at_once(with_max_timestamp(self.log))
        assert (None if newest is None else newest.timestamp) == (max(times) if times else None)

    @invariant()
    def open_transactions_agree(self) -> None:
        is_open = {p for p, producer in self.producers.items() if producer.in_transaction}
        found = {e.producer_id for e in self.log.producers if e.txn_first_offset is not None}
        assert found == is_open


LogMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestLogMachine = LogMachine.TestCase
