"""Offsets of transactions in a group's partition: whatever ends first, the commit that was written last counts.

A list of log entries is the truth. The machine that lived through it, one that loads it, and one that loads it after compaction must
agree with a model that looks at the whole list.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from headrace.coordinator.group.machine import GroupMachine
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.stored_records import (
    CommittedOffset,
    GroupLogRecord,
    OffsetRecord,
    PendingOffsetRecord,
    TransactionEndRecord,
)

PLACES = [("g", "t", 0), ("g", "t", 1), ("h", "t", 0)]
PRODUCERS = (1, 2, 3)


class Commit(NamedTuple):
    place: tuple[str, str, int]
    producer_id: int | None
    is_tombstone: bool


class End(NamedTuple):
    producer_id: int
    is_commit: bool


Entry = Commit | End
_places = st.sampled_from(PLACES)
_producers = st.sampled_from(PRODUCERS)
_entries = st.lists(
    st.one_of(
        st.builds(Commit, _places, st.none(), st.booleans()),
        st.builds(Commit, _places, _producers, st.just(False)),
        st.builds(End, _producers, st.booleans()),
    ),
    max_size=24,
)


def fate(log: Sequence[Entry], at: int) -> bool | None:
    """Whether the transaction of a commit was committed; None while it is open."""
    entry = log[at]
    assert isinstance(entry, Commit)
    if entry.producer_id is None:
        return True
    for later in log[at:]:
        if isinstance(later, End) and later.producer_id == entry.producer_id:
            return later.is_commit
    return None


def expected(log: Sequence[Entry]) -> dict[tuple[str, str, int], int]:
    """The offset that counts, by place; offsets are positions in the log."""
    counting = {}
    for at, entry in enumerate(log):
        if isinstance(entry, Commit) and fate(log, at):
            counting[entry.place] = None if entry.is_tombstone else at
    return {place: at for place, at in counting.items() if at is not None}


def stored(entry: Entry, at: int) -> GroupLogRecord:
    if isinstance(entry, End):
        return TransactionEndRecord(*entry)
    committed = None if entry.is_tombstone else CommittedOffset(at, commit_timestamp_ms=0)
    record = OffsetRecord(*entry.place, committed)
    return record if entry.producer_id is None else PendingOffsetRecord(entry.producer_id, record)


def loaded(entries: Sequence[tuple[int, Entry]]) -> GroupMachine:
    machine = GroupMachine(GroupSettings())
    for at, entry in entries:
        machine.replay(stored(entry, at))
    return machine


def counting(machine: GroupMachine) -> dict[tuple[str, str, int], int]:
    return {
        (group, topic, partition): committed.offset
        for group, topics in machine.state.hard.offsets.items()
        for topic, partitions in topics.items()
        for partition, committed in partitions.items()
    }


def compacted(log: Sequence[Entry]) -> list[tuple[int, Entry]]:
    """What compaction may leave: up to the first open transaction, the last of each key, and nothing that was aborted."""
    commits = [at for at, entry in enumerate(log) if isinstance(entry, Commit)]
    stable = next((at for at in commits if fate(log, at) is None), len(log))
    newest: dict[tuple[str, str, int], int] = {}
    for at in commits:
        entry = log[at]
        if at < stable and fate(log, at) and isinstance(entry, Commit):
            newest[entry.place] = at
    return [
        (at, entry)
        for at, entry in enumerate(log)
        if at >= stable or isinstance(entry, End) or newest.get(entry.place) == at
    ]


@given(_entries)
def test_the_commit_that_was_written_last_counts(log: list[Entry]) -> None:
    machine = GroupMachine(GroupSettings())
    for at, entry in enumerate(log):
        machine.replay(stored(entry, at))
        assert counting(machine) == expected(log[: at + 1])


@given(_entries, _entries)
def test_who_loads_a_compacted_log_knows_the_same(log: list[Entry], later: list[Entry]) -> None:
    whole, short = loaded(list(enumerate(log))), loaded(compacted(log))
    assert counting(short) == counting(whole)
    for place in PLACES:
        assert short.state.hard.pending.has(*place) == whole.state.hard.pending.has(*place)
    for at, entry in enumerate(later, len(log)):
        for machine in (whole, short):
            machine.replay(stored(entry, at))
        assert counting(short) == counting(whole)


@given(_entries)
def test_no_trace_is_left_when_all_transactions_have_ended(log: list[Entry]) -> None:
    machine = loaded(list(enumerate(log)))
    for producer_id in PRODUCERS:
        machine.replay(TransactionEndRecord(producer_id, is_commit=False))
    assert len(machine.state.hard.pending) == 0
    assert machine.state.hard.pending.groups == frozenset()
    assert all(topics for topics in machine.state.hard.offsets.values())
