"""The shop of the demo: an hour of its events, some of which come late, and what the pipeline must make of them. Pure.

The same number of events gives the same events every time. The expected result is counted here in plain Python, by the rule
that the pipeline states in Spark's words: five-minute windows, and nothing counts any more that comes for a window which
closed ten minutes of event time ago.
"""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

OPENING_S: Final = int(datetime(2026, 3, 14, 18, 0, tzinfo=UTC).timestamp())
SPAN_S: Final = 3600
WINDOW_S: Final = 300
WATERMARK_S: Final = 600
KINDS: Final = ("view", "search", "cart", "order")

_WEIGHTS: Final = (60, 25, 10, 5)
_USERS: Final = 2000
_RUSH_MINUTE: Final = 38  # an advertisement was on television
_MOST_OUT_OF_ORDER_S: Final = 90
_CLOSING_KIND: Final = "closing"


@dataclass(frozen=True, slots=True)
class Event:
    """Something a customer did, when it happened by the customer's clock."""

    number: int
    user: str
    kind: str
    cents: int
    at_s: int

    def value(self) -> bytes:
        at = datetime.fromtimestamp(self.at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = {"id": self.number, "user": self.user, "kind": self.kind, "cents": self.cents}
        return json.dumps({**fields, "at": at}).encode()

    @property
    def window_s(self) -> int:
        """When the window begins that the event belongs to."""
        return self.at_s - self.at_s % WINDOW_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the result: what happened in a window, by kind."""

    window_s: int
    kind: str
    events: int
    cents: int


def events(count: int) -> list[Event]:
    """An hour of events in the order in which they are sent: nearly, not quite, that in which they happened."""
    chance = random.Random(7)
    minutes = range(SPAN_S // 60)
    crowd = [2 + 10 * max(0.0, 1 - abs(minute - _RUSH_MINUTE) / 8) for minute in minutes]
    drawn = sorted(
        60 * minute + chance.randrange(60) for minute in chance.choices(minutes, crowd, k=count)
    )
    found = []
    for number, second in enumerate(drawn):
        late_s = chance.randrange(_MOST_OUT_OF_ORDER_S) if chance.random() < 0.2 else 0
        found.append(_event(chance, number, OPENING_S + max(0, second - late_s)))
    return found


def latecomers(first_number: int, newest_s: int, count: int) -> list[Event]:
    """Events of phones that were offline: some come late but in time, as many come when their windows are closed."""
    chance = random.Random(8)
    found = []
    for number in range(first_number, first_number + count):
        if number % 2:
            at_s = newest_s - chance.randrange(WINDOW_S, WATERMARK_S - 60)
        else:
            at_s = OPENING_S + chance.randrange(SPAN_S // 3)
        found.append(_event(chance, number, at_s))
    return found


def closing_event(number: int) -> Event:
    """One from the next day: it tells the pipeline that no more will come for this one."""
    return Event(number, "clock", _CLOSING_KIND, 0, OPENING_S + 86400)


def _event(chance: random.Random, number: int, at_s: int) -> Event:
    [kind] = chance.choices(KINDS, _WEIGHTS)
    cents = chance.randrange(500, 20000) if kind == "order" else 0
    return Event(number, f"user-{chance.randrange(_USERS)}", kind, cents, at_s)


# ---- the result, in plain Python


def watermark_s(seen: Iterable[Event]) -> int:
    """Up to when windows are closed once these events were seen."""
    return max(event.at_s for event in seen) - WATERMARK_S


def is_too_late(event: Event, watermark: int) -> bool:
    return event.window_s + WINDOW_S <= watermark


def counted(counting: Iterable[Event]) -> list[Row]:
    """What the result must be for these events."""
    sums: dict[tuple[int, str], tuple[int, int]] = {}
    for event in counting:
        number, cents = sums.get((event.window_s, event.kind), (0, 0))
        sums[event.window_s, event.kind] = (number + 1, cents + event.cents)
    return [
        Row(window_s=window, kind=kind, events=number, cents=cents)
        for (window, kind), (number, cents) in sorted(sums.items())
    ]


def closed(rows: Iterable[Row], watermark: int) -> list[Row]:
    """Those of them whose windows are closed."""
    return [row for row in rows if row.window_s + WINDOW_S <= watermark]


def row_of(value: bytes) -> Row:
    """A record of the pipeline's topic."""
    fields = json.loads(value)
    return Row(
        window_s=int(datetime.fromisoformat(fields["window"]).timestamp()),
        kind=fields["kind"],
        events=fields["events"],
        cents=fields["cents"],
    )


def by_window(rows: Sequence[Row]) -> Iterator[tuple[str, int, int]]:
    """Time, events and takings of each window."""
    for window in sorted({row.window_s for row in rows}):
        mine = [row for row in rows if row.window_s == window]
        moment = datetime.fromtimestamp(window, UTC)
        yield (
            f"{moment:%H:%M}",
            sum(row.events for row in mine),
            sum(row.cents for row in mine),
        )
