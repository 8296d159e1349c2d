"""Every moment of a swap, and of its completion at the next start, as the last one of the process."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.log.compaction.compaction_rewrite import Compaction
from headrace.log.compaction.log_compaction import install, plan
from headrace.log.recovery import Checkpointed
from headrace.records.control_batch import ControlType
from tests.support.crashing_disk import Crashed, CrashingDisk, UnsyncedDisk
from tests.support.keyed_log import KeyedLog

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT
AFTER = [(4, b"b", b"2"), (8, b"a", b"2"), (9, b"c", b"2"), (11, b"d", b"1")]


def write(directory: Path) -> KeyedLog:
    """Three sealed segments with aborted and committed transactions, an idempotent producer, and an active segment."""
    keyed = KeyedLog(directory)
    keyed.put((b"a", b"1"), (b"b", b"1"))
    keyed.put_by(7, (b"a", b"aborted"), transactional=True)
    keyed.end(7, ABORT)
    keyed.roll()
    keyed.put_by(8, (b"b", b"2"), (b"c", b"1"))
    keyed.put_by(9, (b"c", b"aborted"), transactional=True)
    keyed.roll()
    keyed.end(9, ABORT)
    keyed.put_by(7, (b"a", b"2"), (b"c", b"2"), transactional=True)
    keyed.end(7, COMMIT)
    keyed.roll()
    keyed.put((b"d", b"1"))
    return keyed


def compact_until_crash(keyed: KeyedLog, steps: int) -> bool:
    """Returns whether the disk died before all was done."""
    keyed.log.disk = disk = CrashingDisk(steps)
    for segment in keyed.log.segments:
        segment._disk = disk
    job = plan(keyed.log, keyed.assess(), now_ms=keyed.now_ms)
    try:
        for rewritten in Compaction(UnsyncedDisk(), job).rewrite():
            install(keyed.log, rewritten, now_ms=keyed.now_ms)
    except Crashed:
        return True
    return False


class Swap:
    """A log that is compacted again and again from the same start, to be interrupted somewhere."""

    def __init__(self, directory: Path, checkpointed: Checkpointed | None) -> None:
        self.keyed = write(directory / "keyed-0")
        self.keyed.log.flush(self.keyed.now_ms)
        self.checkpointed = checkpointed
        self.table = self.keyed.table()
        self.sequences = self.keyed.sequence_ends()
        self.before = self.keyed.pairs()
        self._pristine = directory / "pristine"
        shutil.copytree(self.keyed.directory, self._pristine)

    def interrupt(self, steps: int) -> bool:
        """Start over and compact until the disk dies; False if it did not have to."""
        shutil.rmtree(self.keyed.directory)
        shutil.copytree(self._pristine, self.keyed.directory)
        self.keyed.log.cleaned_to = None
        self.keyed.reopen(checkpointed=self.checkpointed)
        return compact_until_crash(self.keyed, steps)

    def interrupt_opening(self, steps: int) -> bool:
        try:
            self.keyed.reopen(disk=CrashingDisk(steps), checkpointed=self.checkpointed)
        except Crashed:
            return True
        return False

    def check(self) -> int:
        """The log is whole and goes on from the old state or the new one. Returns the number of records found."""
        keyed = self.keyed
        keyed.reopen(checkpointed=self.checkpointed)
        assert keyed.table() == self.table
        assert keyed.sequence_ends() == self.sequences
        assert keyed.log.log_end_offset == 12
        found = keyed.pairs()
        assert set(found) <= set(self.before)
        left = {path.suffix for path in keyed.directory.iterdir()}
        assert not left & {".cleaned", ".swap", ".deleted"}
        keyed.compact()
        assert keyed.pairs() == AFTER
        return len(found)


@pytest.mark.parametrize("checkpointed", [None, Checkpointed(recovery_point=11)])
def test_a_crash_leaves_the_old_or_the_new(
    tmp_path: Path, checkpointed: Checkpointed | None
) -> None:
    swap = Swap(tmp_path, checkpointed)
    seen: set[int] = set()
    steps = 0
    while swap.interrupt(steps):
        seen.add(swap.check())
        steps += 1
    assert swap.check() == len(AFTER)
    assert seen == {len(swap.before), len(AFTER)}
    assert steps > 15


def test_a_second_crash_during_the_next_start(tmp_path: Path) -> None:
    swap = Swap(tmp_path, Checkpointed(recovery_point=11))
    swap_steps = 0
    while swap.interrupt(swap_steps):
        opening_steps = 0
        while swap.interrupt_opening(opening_steps):
            swap.check()
            opening_steps += 1
            swap.interrupt(swap_steps)
        swap_steps += 1


def test_what_waits_for_removal_is_removed_at_the_next_start(tmp_path: Path) -> None:
    keyed = write(tmp_path / "keyed-0")
    keyed.compact()
    assert list(keyed.directory.glob("*.deleted"))
    keyed.reopen()
    assert list(keyed.directory.glob("*.deleted")) == []
    assert keyed.table() == {b"a": b"2", b"b": b"2", b"c": b"2", b"d": b"1"}


def test_what_was_compacted_is_whole_when_the_topic_is_not_compacted_any_more(
    tmp_path: Path,
) -> None:
    """The cleaner checkpoint was not written yet when the broker was killed."""
    keyed = write(tmp_path / "keyed-0")
    keyed.compact()
    keyed.log.cleaned_to = None
    found = keyed.pairs()
    keyed.config = replace(keyed.config, cleanup_compact=False, cleanup_delete=True)
    keyed.reopen()
    assert keyed.pairs() == found
