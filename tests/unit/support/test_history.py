"""The checker itself: every planted fault is found, and its nearest legal neighbour is not taken for one."""

import random
from collections.abc import Callable

import pytest

from tests.support.history import (
    History,
    Kind,
    NotOurs,
    Outcome,
    RecordId,
    Seen,
    Send,
    check,
    outcome_of,
    record_of,
    told,
    value_of,
)

PRODUCERS, PARTITIONS, RECORDS = 2, 2, 30

Log = dict[int, list[tuple[int, bytes | None]]]


class Run:
    """A faultless run, for a test to spoil."""

    def __init__(self) -> None:
        self.history = History()
        self.log: Log = {partition: [] for partition in range(PARTITIONS)}
        clock = 0
        for sequence in range(RECORDS):
            for partition in range(PARTITIONS):
                for producer in range(PRODUCERS):
                    record = RecordId(producer, partition, sequence)
                    offset = len(self.log[partition])
                    clock += 10
                    self.history.sends[record] = Send(
                        record, clock, Outcome.OK, completed_ns=clock + 5, offset=offset
                    )
                    self.log[partition].append((offset, value_of(record)))
                    self.history.seen.append(Seen("reader", partition, offset, value_of(record)))

    def send(self, partition: int, offset: int) -> Send:
        return self.history.sends[record_of(self.log[partition][offset][1])]

    def kinds(self) -> set[Kind]:
        return {violation.kind for violation in check(self.history, self.log)}

    def forget_sightings(self) -> None:
        self.history.seen.clear()


def lose(run: Run) -> None:
    del run.log[1][20]


def duplicate(run: Run) -> None:
    run.log[0].append((len(run.log[0]), run.log[0][7][1]))


def reorder(run: Run) -> None:
    entries = run.log[0]
    (one, first), (other, second) = entries[10], entries[12]  # of the same producer
    entries[10], entries[12] = (one, second), (other, first)


def move(run: Run) -> None:
    run.log[0] = [(offset + (offset >= 25), value) for offset, value in run.log[0]]


def overtake(run: Run) -> None:
    late = run.send(1, 40)
    late.invoked_ns = late.completed_ns = 10**9
    run.send(1, 45).completed_ns = 10**8


def invent(run: Run) -> None:
    run.log[0].append((len(run.log[0]), value_of(RecordId(9, 0, 0))))


def misroute(run: Run) -> None:
    stray = run.log[1].pop()[1]
    run.log[0].append((len(run.log[0]), stray))
    run.history.sends[record_of(stray)].offset = -1


def damage(run: Run) -> None:
    offset, value = run.log[0][3]
    assert value is not None
    run.log[0][3] = (offset, value[:-9] + b"x" + value[-8:])


def resurrect(run: Run) -> None:
    run.send(0, 59).outcome = Outcome.FAIL


def unsee(run: Run) -> None:
    last = len(run.log[1])
    run.history.seen.append(Seen("reader", 1, last, value_of(RecordId(0, 1, 99))))


def skip(run: Run) -> None:
    run.history.seen = [
        seen for seen in run.history.seen if (seen.partition, seen.offset) != (0, 9)
    ]


def go_back(run: Run) -> None:
    run.history.seen.append(Seen("reader", 0, 50, run.log[0][50][1]))


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lose, Kind.LOST),
        (duplicate, Kind.DUPLICATED),
        (reorder, Kind.REORDERED),
        (move, Kind.MOVED),
        (overtake, Kind.OVERTAKEN),
        (invent, Kind.PHANTOM),
        (misroute, Kind.PHANTOM),
        (damage, Kind.PHANTOM),
        (resurrect, Kind.UNDEAD),
        (unsee, Kind.VANISHED),
        (skip, Kind.SKIPPED),
        (go_back, Kind.SKIPPED),
    ],
)
def test_a_planted_fault_is_found(spoil: Callable[[Run], None], kind: Kind) -> None:
    run = Run()
    spoil(run)
    assert kind in run.kinds()


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [(lose, Kind.LOST), (duplicate, Kind.DUPLICATED), (move, Kind.MOVED)],
)
def test_it_is_found_without_readers_too(spoil: Callable[[Run], None], kind: Kind) -> None:
    run = Run()
    run.forget_sightings()
    spoil(run)
    assert kind in run.kinds()


def test_a_faultless_run_is_found_to_be_one() -> None:
    assert Run().kinds() == set()


def test_what_is_in_doubt_may_be_there_or_not() -> None:
    run = Run()
    run.forget_sightings()
    run.send(0, 20).outcome = Outcome.UNKNOWN
    missing = record_of(run.log[0].pop()[1])
    run.history.sends[missing].outcome = Outcome.UNKNOWN
    assert run.kinds() == set()


def test_gaps_in_a_producers_sequence_and_in_the_offsets_are_legal() -> None:
    run = Run()
    run.forget_sightings()
    offset, value = run.log[1].pop(30)
    send = run.history.sends[record_of(value)]
    assert send.offset == offset
    send.outcome = Outcome.FAIL
    assert run.kinds() == set()


def test_sends_that_overlap_may_be_written_in_any_order() -> None:
    run = Run()
    first, second = run.send(0, 10), run.send(0, 11)
    second.invoked_ns = first.invoked_ns - 100
    assert run.kinds() == set()


def test_a_reader_may_start_anywhere_and_readers_are_independent() -> None:
    run = Run()
    run.history.seen += [
        Seen("late", 0, offset, value) for offset, value in run.log[0] if offset >= 40
    ]
    assert run.kinds() == set()


def test_duplicates_are_legal_without_idempotence() -> None:
    run = Run()
    duplicate(run)
    assert check(run.history, run.log, idempotent=False) == []


def test_a_run_in_which_nothing_happened_proves_nothing() -> None:
    violations = check(History(), {0: []}, at_least_acknowledged=10)
    assert [violation.kind for violation in violations] == [Kind.VACUOUS]


def test_one_fault_among_many_records_is_found_whichever_it_hits() -> None:
    for seed in range(20):
        chance = random.Random(seed)
        run = Run()
        run.forget_sightings()
        partition = chance.randrange(PARTITIONS)
        at = chance.randrange(len(run.log[partition]))
        victim = record_of(run.log[partition].pop(at)[1])
        violations = check(run.history, run.log)
        assert [kind for kind, _ in violations] == [Kind.LOST]
        assert str(victim) in told(violations)


def test_a_value_tells_whose_it_is_and_damage_shows() -> None:
    record = RecordId(3, 1, 12345)
    for size in (0, 1, 100):
        assert record_of(value_of(record, body_bytes=size)) == record
    value = value_of(record)
    for at in range(len(value)):
        with pytest.raises(NotOurs):
            record_of(value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :])
    for damaged in (None, b"", value[:-1], b"a|b|c"):
        with pytest.raises(NotOurs):
            record_of(damaged)


def test_only_a_refusal_before_any_append_is_certain() -> None:
    assert outcome_of(None) is Outcome.OK
    assert outcome_of("MSG_SIZE_TOO_LARGE") is Outcome.FAIL
    assert outcome_of("_MSG_TIMED_OUT") is Outcome.UNKNOWN
    assert outcome_of("NOT_ENOUGH_REPLICAS") is Outcome.UNKNOWN


def test_silences_are_measured_on_acknowledgements() -> None:
    run = Run()
    times = sorted(
        send.completed_ns for send in run.history.acknowledged() if send.record.partition == 0
    )
    assert run.history.longest_silence_ms(0, times[0], times[-1]) == pytest.approx(30 / 1e6)
    assert run.history.longest_silence_ms(0, times[-1], times[-1] + 5_000_000) == 5.0
    assert run.history.first_acknowledged_ms(0, times[-1] + 1) is None
    assert run.history.first_acknowledged_ms(0, 0) == pytest.approx(15 / 1e6)
