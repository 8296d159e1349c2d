"""Random keyed logs, compacted at random moments with maps of random size, killed in the middle, opened again.

Held against the plain list of everything that was ever written.
"""

import dataclasses
import tempfile
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.log.compaction.compaction_rewrite import Compaction
from headrace.log.compaction.log_compaction import install, plan
from headrace.log.recovery import Checkpointed
from headrace.log.steps import run_at_once
from headrace.log.time_lookup import first_at_or_after
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType
from tests.support.crashing_disk import Crashed, CrashingDisk, UnsyncedDisk
from tests.support.keyed_log import COMPACTED, KeyedLog, Pair, room_for

CONFIG = dataclasses.replace(
    COMPACTED, segment_bytes=900, index_interval_bytes=100, delete_retention_ms=1000
)

keys = st.sampled_from([b"a", b"b", b"c", b"d", b""])
values = st.one_of(st.none(), st.integers(0, 255).map(lambda number: b"%d" % number))
pairs = st.lists(st.tuples(keys, values), min_size=1, max_size=6)
codecs = st.sampled_from(list(Codec))


class Put(NamedTuple):
    pairs: list[tuple[bytes, bytes | None]]
    codec: Codec
    producer_id: int  # 0 is nobody, 1 and 2 are idempotent, from 3 on transactional


class End(NamedTuple):
    producer_id: int
    control_type: ControlType
    fences: bool


class Tick(NamedTuple):
    ms: int


class Roll(NamedTuple):
    pass


class Compact(NamedTuple):
    map_entries: int


class Crash(NamedTuple):
    """A compaction that is killed after so many changes of names, and the next start."""

    steps: int
    map_entries: int
    flushed: bool


class LoseCheckpoint(NamedTuple):
    """The cleaner checkpoint is gone: all counts as dirty again."""


Step = Put | End | Tick | Roll | Compact | Crash | LoseCheckpoint

puts = st.builds(Put, pairs, codecs, st.integers(0, 5))
ends = st.builds(End, st.integers(3, 5), st.sampled_from(ControlType), st.booleans())
ticks = st.builds(Tick, st.sampled_from([1, 400, 1000]))
compactions = st.builds(Compact, st.sampled_from([1, 2, 4, 100, 100]))
crashes = st.builds(Crash, st.integers(0, 40), st.sampled_from([2, 100]), st.booleans())


@st.composite
def rounds(draw: st.DrawFn) -> list[Step]:
    """Something is written, time goes on, and a compaction is tried."""
    written: list[Step] = draw(st.lists(st.one_of(puts, puts, ends, st.builds(Roll)), max_size=8))
    tried: Step = draw(st.one_of(compactions, crashes))
    rolled: list[Step] = draw(st.sampled_from([[], [Roll()], [Roll()], [LoseCheckpoint(), Roll()]]))
    return [*written, draw(ticks), *rolled, tried]


@dataclasses.dataclass(slots=True)
class Written:
    """A record as its producer sent it."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    aborted: bool = False
    tombstone_until_ms: int | None = None  # not removed before, once a compaction has seen it


class Story:
    """The log and the list."""

    def __init__(self, directory: Path) -> None:
        self.keyed = KeyedLog(directory, CONFIG)
        self.written: list[Written] = []
        self.open: dict[int, list[Written]] = {}
        self.epochs: dict[int, int] = {}

    def take(self, step: Step) -> None:
        keyed = self.keyed
        match step:
            case Put():
                self._put(step)
            case End():
                self._end(step)
            case Tick(ms):
                keyed.now_ms += ms
            case Roll():
                keyed.roll()
            case Compact(map_entries):
                self._see_tombstones()
                keyed.compact(room_for(map_entries))
                self.check()
            case Crash():
                self._crash(step)
                self.check()
            case LoseCheckpoint():
                keyed.log.cleaned_to = None

    def _put(self, step: Put) -> None:
        keyed, producer_id = self.keyed, step.producer_id
        sent: list[Pair] = list(step.pairs)
        if producer_id == 0:
            base_offset = keyed.put(*sent, codec=step.codec)
        else:
            base_offset = keyed.put_by(
                producer_id,
                *sent,
                codec=step.codec,
                transactional=producer_id >= 3,
                epoch=self.epochs.get(producer_id, 0),
            )
        records = [
            Written(base_offset + at, keyed.now_ms + at, *pair)
            for at, pair in enumerate(step.pairs)
        ]
        self.written += records
        if producer_id >= 3:
            self.open.setdefault(producer_id, []).extend(records)

    def _end(self, step: End) -> None:
        producer_id = step.producer_id
        if step.fences:
            self.epochs[producer_id] = self.epochs.get(producer_id, 0) + 1
            self.keyed.sequences[producer_id] = 0
        self.keyed.end(producer_id, step.control_type, epoch=self.epochs.get(producer_id, 0))
        for record in self.open.pop(producer_id, []):
            record.aborted = step.control_type is ControlType.ABORT

    def _see_tombstones(self) -> None:
        end_offset = self.keyed.assess().end_offset
        for record in self.written:
            if record.offset < end_offset and record.tombstone_until_ms is None:
                record.tombstone_until_ms = self.keyed.now_ms + CONFIG.delete_retention_ms

    def _crash(self, step: Crash) -> None:
        keyed = self.keyed
        self._see_tombstones()
        bounds = (keyed.log.log_end_offset, keyed.last_stable_offset, keyed.sequence_ends())
        disk = CrashingDisk(step.steps)
        keyed.log.disk = disk
        for segment in keyed.log.segments:
            segment._disk = disk
        job = plan(keyed.log, keyed.assess(), now_ms=keyed.now_ms)
        run = Compaction(UnsyncedDisk(), job, room_for(step.map_entries))
        try:
            for rewritten in run.rewrite():
                assert install(keyed.log, rewritten, now_ms=keyed.now_ms)
            keyed.log.cleaned_to = run.progress.first_dirty_offset
        except Crashed:
            pass
        active = keyed.log.segments.active.base_offset
        keyed.reopen(checkpointed=Checkpointed(recovery_point=active if step.flushed else 0))
        assert bounds == (
            keyed.log.log_end_offset,
            keyed.last_stable_offset,
            keyed.sequence_ends(),
        )

    # ---- what must hold

    def check(self) -> None:
        self.check_table()
        self.check_records()
        self.check_reads()

    def check_table(self) -> None:
        """Readers of committed data end up with the newest value of each key."""
        table: dict[bytes | None, bytes] = {}
        for record in self._committed():
            if record.value is None:
                table.pop(record.key, None)
            else:
                table[record.key] = record.value
        assert self.keyed.table() == table

    def _committed(self) -> list[Written]:
        end_offset = self.keyed.last_stable_offset
        return [
            record for record in self.written if record.offset < end_offset and not record.aborted
        ]

    def check_records(self) -> None:
        """What is stored was written so; of what is clean, one record a key; no tombstone went too early."""
        stored = {record.offset: record for record in self.keyed.records()}
        assert list(stored) == sorted(stored)
        written = {record.offset: record for record in self.written}
        clean: set[bytes] = set()
        for offset, record in stored.items():
            original = written[offset]
            assert (record.timestamp, record.key, record.value) == (
                original.timestamp,
                original.key,
                original.value,
            )
            if offset < (self.keyed.log.cleaned_to or 0):
                assert original.key not in clean
                assert not original.aborted
                clean.add(original.key)
        newest = {record.key: record for record in self._committed()}
        for original in newest.values():
            until_ms = original.tombstone_until_ms
            if original.value is not None or until_ms is None or self.keyed.now_ms < until_ms:
                assert original.offset in stored

    def check_reads(self) -> None:
        """Offsets in gaps lead to the next batch; times lead to the first record that reaches them."""
        log, batches = self.keyed.log, self.keyed.batches()
        ends = [batch.header.next_offset for batch in batches]
        assert ends == sorted(ends)
        assert not ends or ends[-1] == log.log_end_offset
        for offset in range(0, log.log_end_offset, 3):
            first = next(batch for batch in batches if batch.header.next_offset > offset)
            assert self.keyed.batches(offset)[0].header == first.header
        times = [record for batch in batches for record in batch.records]
        for wanted in range(self.keyed.now_ms - 500, self.keyed.now_ms + 10, 50):
            found = run_at_once(first_at_or_after(log, wanted))
            expected = next((record for record in times if record.timestamp >= wanted), None)
            assert (found and found.offset) == (expected and expected.offset)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(rounds(), min_size=2, max_size=8))
def test_compaction_against_a_list(story: list[list[Step]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        told = Story(Path(directory) / "keyed-0")
        for step in chain.from_iterable(story):
            told.take(step)
        for producer_id in list(told.open):
            told.take(End(producer_id, ControlType.COMMIT, False))
        for last in (Roll(), Compact(3), Tick(1000), Compact(100), Crash(1000, 100, False)):
            told.take(last)
        told.keyed.log.abandon()
