"""What clients did to a topic and what became of it: the history of a run, and the checker that judges it.

Owns the identity of a record (every value is unique and says who sent it, where to, and as which of its records), the
outcome of a send, and the checks. Pure: no client, no clock, no threads; whoever records gives the times. A run in which too
little happened proves nothing, so the checker refuses it as well.
"""

import enum
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple


class RecordId(NamedTuple):
    """Who sent a record, where to, and as which of the sender's records there."""

    producer: int
    partition: int
    sequence: int


class NotOurs(ValueError):
    """A value that no producer of this run can have sent."""


def value_of(record: RecordId, *, body_bytes: int = 64) -> bytes:
    """The record's value: its identity, and a body that follows from it."""
    name = "{}.{}.{}".format(*record).encode()
    filler = b"%08x" % zlib.crc32(name)
    body = (filler * (body_bytes // len(filler) + 1))[:body_bytes]
    return b"|".join((name, body, b"%08x" % zlib.crc32(name + body)))


def record_of(value: bytes | None) -> RecordId:
    """Whose value this is. Raises NotOurs, for damage as well."""
    parts = (value or b"").split(b"|")
    if len(parts) != 3 or parts[2] != b"%08x" % zlib.crc32(parts[0] + parts[1]):
        raise NotOurs(f"{value!r:.80}")
    record = RecordId(*map(int, parts[0].split(b".")))
    if value_of(record, body_bytes=len(parts[1])) != value:
        raise NotOurs(f"{value!r:.80}")
    return record


class Outcome(enum.Enum):
    """What the sender knows."""

    OK = "acknowledged"
    FAIL = "certainly not written"
    UNKNOWN = "in doubt"


# Refused before anything was appended, whatever happened to earlier attempts. All other errors leave a doubt, because a
# client that retries tells only the last one.
CERTAIN_FAILURES = frozenset(
    (
        "INVALID_MSG",
        "INVALID_RECORD",
        "MSG_SIZE_TOO_LARGE",
        "TOPIC_AUTHORIZATION_FAILED",
        "TOPIC_EXCEPTION",
        "_BAD_MSG",
        "_QUEUE_FULL",
    )
)


def outcome_of(error_name: str | None) -> Outcome:
    """The outcome of a send by the name of its error."""
    if error_name is None:
        return Outcome.OK
    return Outcome.FAIL if error_name in CERTAIN_FAILURES else Outcome.UNKNOWN


@dataclass(slots=True)
class Send:
    """One record on its way. An offset of -1 is one that the sender was not told."""

    record: RecordId
    invoked_ns: int
    outcome: Outcome = Outcome.UNKNOWN
    completed_ns: int = -1
    offset: int = -1


class Seen(NamedTuple):
    """A record as a reader got it; readers number their polls' records by the order of this list."""

    reader: str
    partition: int
    offset: int
    value: bytes | None


Log = Mapping[int, list[tuple[int, bytes | None]]]
"""What a fresh reader finds at the end: partition → (offset, value), by offset."""


@dataclass(slots=True)
class History:
    """All sends and all sightings of a run."""

    sends: dict[RecordId, Send] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def acknowledged(self) -> list[Send]:
        """The sends that were answered with success."""
        sends = list(self.sends.values())  # at once: others may be adding to it
        return [send for send in sends if send.outcome is Outcome.OK]

    def longest_silence_ms(self, partition: int, since_ns: int, until_ns: int) -> float:
        """The longest time in the window in which nothing was acknowledged on a partition."""
        times = sorted(
            send.completed_ns
            for send in self.acknowledged()
            if send.record.partition == partition and since_ns <= send.completed_ns <= until_ns
        )
        edges = [since_ns, *times, until_ns]
        return max(late - early for early, late in pairwise(edges)) / 1e6

    def first_acknowledged_ms(self, partition: int, since_ns: int) -> float | None:
        """How long after a moment the first record sent since then was acknowledged on a partition."""
        times = [
            send.completed_ns
            for send in self.acknowledged()
            if send.record.partition == partition and send.invoked_ns >= since_ns
        ]
        return (min(times) - since_ns) / 1e6 if times else None


class Kind(enum.Enum):
    """What can be wrong."""

    LOST = "an acknowledged record is not in the final log"
    DUPLICATED = "a record is in the final log twice"
    REORDERED = "records of one producer changed places"
    OVERTAKEN = "a record stands behind one that was sent after it was acknowledged"
    MOVED = "an offset held different records at different times"
    PHANTOM = "a record that nobody sent, or not there, or not so"
    UNDEAD = "a record that was refused is in the final log"
    VANISHED = "a reader saw a record that is not in the final log"
    SKIPPED = "a reader went back or missed a record"
    VACUOUS = "too little happened to prove anything"


class Violation(NamedTuple):
    """One thing that is wrong, with its smallest proof."""

    kind: Kind
    story: str


def check(
    history: History, final: Log, *, at_least_acknowledged: int = 1, idempotent: bool = True
) -> list[Violation]:
    """Everything that is wrong with a run; nothing if it kept all promises."""
    found: list[Violation] = []
    log = _decoded(final, found)
    positions: dict[RecordId, list[int]] = defaultdict(list)
    for partition, entries in log.items():
        for offset, record in entries:
            positions[record].append(offset)
            if record.partition != partition or record not in history.sends:
                found.append(Violation(Kind.PHANTOM, f"{record} at {partition}@{offset}"))
    _check_sends(history, positions, found)
    if idempotent:
        _check_duplicates(positions, found)
        _check_order(log, found)
    _check_real_time(history, found)
    _check_offsets(history, log, found)
    _check_readers(history, log, found)
    acknowledged = len(history.acknowledged())
    if acknowledged < at_least_acknowledged:
        story = f"{acknowledged} acknowledged, {at_least_acknowledged} wanted"
        found.append(Violation(Kind.VACUOUS, story))
    return found


_Decoded = dict[int, list[tuple[int, RecordId]]]


def _decoded(final: Log, found: list[Violation]) -> _Decoded:
    log: _Decoded = {}
    for partition, entries in final.items():
        log[partition] = []
        for offset, value in entries:
            try:
                log[partition].append((offset, record_of(value)))
            except NotOurs as damage:
                found.append(Violation(Kind.PHANTOM, f"{partition}@{offset}: {damage}"))
    return log


def _check_sends(
    history: History, positions: Mapping[RecordId, list[int]], found: list[Violation]
) -> None:
    for record, send in history.sends.items():
        if send.outcome is Outcome.OK and record not in positions:
            found.append(Violation(Kind.LOST, f"{record}, acknowledged at {send.offset}"))
        elif send.outcome is Outcome.FAIL and record in positions:
            found.append(Violation(Kind.UNDEAD, f"{record} at {positions[record]}"))


def _check_duplicates(positions: Mapping[RecordId, list[int]], found: list[Violation]) -> None:
    found.extend(
        Violation(Kind.DUPLICATED, f"{record} at {offsets}")
        for record, offsets in positions.items()
        if len(offsets) > 1
    )


def _check_order(log: _Decoded, found: list[Violation]) -> None:
    for partition, entries in log.items():
        last: dict[int, tuple[int, RecordId]] = {}
        for offset, record in entries:
            before = last.get(record.producer)
            # Standing twice is another fault than standing in the wrong place.
            if before is not None and record.sequence < before[1].sequence:
                story = f"partition {partition}: {before[1]}@{before[0]}, then {record}@{offset}"
                found.append(Violation(Kind.REORDERED, story))
            last[record.producer] = (offset, record)


def _check_real_time(history: History, found: list[Violation]) -> None:
    by_partition: dict[int, list[Send]] = defaultdict(list)
    for send in history.acknowledged():
        if send.offset >= 0:
            by_partition[send.record.partition].append(send)
    for sends in by_partition.values():
        completed = sorted(sends, key=lambda send: send.completed_ns)
        times = [send.completed_ns for send in completed]
        highest: list[Send] = []
        for send in completed:
            top = highest[-1] if highest and highest[-1].offset > send.offset else send
            highest.append(top)
        for send in sends:
            earlier = bisect_left(times, send.invoked_ns)
            if earlier and highest[earlier - 1].offset > send.offset:
                first = highest[earlier - 1]
                story = (
                    f"{first.record}@{first.offset} was there, {send.record} came to {send.offset}"
                )
                found.append(Violation(Kind.OVERTAKEN, story))


def _check_offsets(history: History, log: _Decoded, found: list[Violation]) -> None:
    """One record per offset, whoever tells: the answer to its sender, any reader, the final log."""
    held: dict[tuple[int, int], dict[RecordId, str]] = defaultdict(dict)
    for partition, entries in log.items():
        for offset, record in entries:
            held[partition, offset].setdefault(record, "the final log")
    for send in history.acknowledged():
        if send.offset >= 0:
            held[send.record.partition, send.offset].setdefault(send.record, "its sender")
    for reader, partition, offset, value in history.seen:
        try:
            held[partition, offset].setdefault(record_of(value), reader)
        except NotOurs as damage:
            found.append(Violation(Kind.PHANTOM, f"{reader}, {partition}@{offset}: {damage}"))
    for (partition, offset), tellers in held.items():
        if len(tellers) > 1:
            story = ", ".join(f"{record} by {teller}" for record, teller in tellers.items())
            found.append(Violation(Kind.MOVED, f"{partition}@{offset}: {story}"))


def _check_readers(history: History, log: _Decoded, found: list[Violation]) -> None:
    index = {
        (partition, offset): number
        for partition, entries in log.items()
        for number, (offset, _) in enumerate(entries)
    }
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for reader, partition, offset, value in history.seen:
        number = index.get((partition, offset))
        if number is None:
            found.append(
                Violation(Kind.VANISHED, f"{value!r:.40} at {partition}@{offset} by {reader}")
            )
            continue
        before = last.get((reader, partition))
        if before is not None and number != before[0] + 1:
            story = f"{reader}, partition {partition}: from {before[1]} to {offset}"
            found.append(Violation(Kind.SKIPPED, story))
        last[reader, partition] = (number, offset)


def told(violations: Iterable[Violation], limit: int = 20) -> str:
    """The violations as a text for a failure's message."""
    lines = [f"{kind.name}: {kind.value}: {story}" for kind, story in violations]
    more = [f"... and {len(lines) - limit} more"] if len(lines) > limit else []
    return "\n".join(lines[:limit] + more)
