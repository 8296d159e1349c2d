"""A compacted log against the plain list of what was written, through compaction, cuts and losses of power."""

import dataclasses
from random import Random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from headrace.log.compaction.compaction_rewrite import Compaction
from headrace.log.compaction.log_compaction import assess, install, plan
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import Checkpointed, open_log
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record
from headrace.records.compression import Codec
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import (
    DIRECTORY,
    NOW_MS,
    TOPIC_PARTITION,
    append,
    open_sample,
    producers_of,
    stored_records,
)

CONFIG = LogConfig(
    cleanup_compact=True,
    cleanup_delete=False,
    segment_bytes=700,
    index_interval_bytes=100,
    min_cleanable_dirty_ratio=0.0,
    file_delete_delay_ms=10,
)
PRODUCER = 5


class CompactedLogMachine(RuleBasedStateMachine):
    """`records` is everything that was written and not cut away; compaction may have removed some of it."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = MemoryDisk()
        self.disk.make_directory("/data")
        self.disk.sync_directory("/")
        self.log: PartitionLog = open_sample(self.disk, CONFIG)
        self.disk.sync_directory("/data")
        self.records: list[Record] = []
        self.end_offset = 0
        self.start_offset = 0
        self.durable_offset = 0
        self.cleaned_to = 0
        self.leader_epoch = 0
        self.now_ms = NOW_MS

    @rule(
        pairs=st.lists(
            st.tuples(
                st.sampled_from([b"a", b"b", b"c", b"d"]), st.none() | st.binary(max_size=40)
            ),
            min_size=1,
            max_size=6,
        ),
        codec=st.sampled_from(Codec),
        idempotent=st.booleans(),
    )
    def append(
        self, pairs: list[tuple[bytes, bytes | None]], codec: Codec, idempotent: bool
    ) -> None:
        self.now_ms += 1
        records = [Record(n, self.now_ms, *pair) for n, pair in enumerate(pairs)]
        options = BatchOptions(codec=codec)
        if idempotent:
            entry = self.log.producers.entry(PRODUCER)
            options = dataclasses.replace(
                options,
                producer_id=PRODUCER,
                producer_epoch=0,
                base_sequence=0 if entry is None else entry.last_sequence + 1,
            )
        appended = append(
            self.log,
            build_batch(records, options),
            leader_epoch=self.leader_epoch,
            now_ms=self.now_ms,
        )
        assert appended.base_offset == self.end_offset
        self.records += [
            record._replace(offset=self.end_offset + record.offset) for record in records
        ]
        self.end_offset += len(records)

    @rule()
    def change_leader(self) -> None:
        self.leader_epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(stop_after=st.integers(0, 3) | st.none())
    def compact(self, stop_after: int | None) -> None:
        """Up to the active segment; maybe not to its end, as if the broker had stopped."""
        self.now_ms += 1
        dirty = assess(
            self.log,
            last_stable_offset=self.end_offset,
            now_ms=self.now_ms,
        )
        job = plan(self.log, dirty, now_ms=self.now_ms)
        compaction = Compaction(self.disk, job)
        for number, rewritten in enumerate(compaction.rewrite()):
            if number == stop_after:
                return
            assert install(self.log, rewritten, now_ms=self.now_ms)
            # Whatever was rewritten may have lost older records of its keys.
            self.cleaned_to = max(self.cleaned_to, job.end_offset)
        self.log.cleaned_to = job.end_offset

    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        """Above what was compacted, as followers do: that part is replicated."""
        lowest = max(self.cleaned_to, self.start_offset)
        offset = lowest + round(where * (self.end_offset - lowest))
        self.log.truncate_to(offset, now_ms=self.now_ms)
        self._cut(self.log.log_end_offset)
        assert self.end_offset <= offset
        self.start_offset = min(self.start_offset, self.end_offset)

    @rule(where=st.floats(0, 1))
    def delete_records(self, where: float) -> None:
        self.start_offset += round(where * (self.end_offset - self.start_offset))
        self.log.advance_log_start(self.start_offset)

    @rule()
    def remove_retired_files(self) -> None:
        self.now_ms += 10
        for path in self.log.removable(self.now_ms):
            self.disk.remove(path)

    @rule()
    def flush(self) -> None:
        self.log.flush(self.now_ms)
        self.durable_offset = self.end_offset

    @rule(how=st.sampled_from(["close", "kill"]))
    def restart(self, how: str) -> None:
        before = (
            self.log.log_end_offset,
            stored_records(self.log),
            producers_of(self.log.producers),
        )
        recovery_point = self.log.recovery_point
        if how == "close":
            self.log.close(self.now_ms)
        self._checkpoint()
        self._open(clean=how == "close", recovery_point=recovery_point)
        after = (
            self.log.log_end_offset,
            stored_records(self.log),
            producers_of(self.log.producers),
        )
        assert after == before
        self.durable_offset = self.log.recovery_point

    @rule(seed=st.integers(0, 2**32), from_start=st.booleans())
    def lose_power(self, seed: int, from_start: bool) -> None:
        recovery_point = 0 if from_start else self.log.recovery_point
        self._checkpoint()
        self.disk.crash(Random(seed))
        self._open(clean=False, recovery_point=recovery_point)
        assert self.durable_offset <= self.log.log_end_offset <= self.end_offset
        self._cut(self.log.log_end_offset)
        # The note of an earlier truncation may be back, which limits what a checkpoint says of the log start.
        self.start_offset = min(self.start_offset, self.end_offset)
        self.durable_offset = self.end_offset

    def _checkpoint(self) -> None:
        """The log is opened with what its owner would have written down just before."""
        truncation = self.log.truncation
        if truncation is not None:
            self.log.forget_truncation(truncation)

    def _open(self, *, clean: bool, recovery_point: int) -> None:
        self.log = open_log(
            self.disk,
            DIRECTORY,
            TOPIC_PARTITION,
            CONFIG,
            now_ms=self.now_ms,
            checkpointed=Checkpointed(
                clean=clean,
                recovery_point=recovery_point,
                log_start_offset=self.start_offset,
                cleaned_to=self.log.cleaned_to,
            ),
        )

    def _cut(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.records = [record for record in self.records if record.offset < end_offset]
        self.durable_offset = min(self.durable_offset, end_offset)
        self.cleaned_to = min(self.cleaned_to, end_offset)

    @invariant()
    def nothing_wrong_is_there(self) -> None:
        written = {record.offset: record for record in self.records}
        found = stored_records(self.log)
        assert all(written[record.offset] == record for record in found)
        offsets = [record.offset for record in found]
        assert offsets == sorted(set(offsets))
        assert (self.log.log_start_offset, self.log.log_end_offset) == (
            self.start_offset,
            self.end_offset,
        )

    @invariant()
    def nothing_wanted_is_lost(self) -> None:
        """What was never compacted is whole; of the rest, each key has its newest record."""
        found = {record.offset for record in stored_records(self.log)}
        newest = {record.key: record.offset for record in self.records}
        wanted = {record.offset for record in self.records if record.offset >= self.cleaned_to}
        wanted |= set(newest.values())
        assert {offset for offset in wanted if offset >= self.start_offset} <= found


CompactedLogMachine.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestCompactedLogMachine = CompactedLogMachine.TestCase
