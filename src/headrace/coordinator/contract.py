"""Contract between a coordinator's core, the shard that runs it, and the log underneath.

Owns the vocabulary: events go into a core (`Machine`), an `Outcome` comes out. A core never reads a clock
(`now_ms` is a parameter, delays are relative), never holds a future (a waiting request is a `Token`), never
talks to another broker (that is an effect), and changes hard state only in `replay`, so that live traffic and
recovery take one path.

Order, for every event: `handle` → append the records → `replay` each of them → once the log has committed all
that was appended so far, release the replies and start the effects.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, NewType, Protocol, TypeVar

from headrace.log.producers.producer_state import Verification
from headrace.records.control_batch import TxnMarker

Token = NewType("Token", int)
"""Stands for a request that waits for its answer. Answered exactly once."""

RecordT = TypeVar("RecordT")
EventT_contra = TypeVar("EventT_contra", contravariant=True)


class Reply(NamedTuple):
    """The answer to a request, maybe to one that was parked by an earlier event."""

    token: Token
    response: object


class SetTimer(NamedTuple):
    """Fire `TimerFired(key)` after this delay. A timer already set under the key is replaced."""

    key: Hashable
    after_ms: int


class CancelTimer(NamedTuple):
    """Forget the timer of this key, if there is one."""

    key: Hashable


class TimerFired(NamedTuple):
    """Event: the delay of a timer has passed."""

    key: Hashable


class Loaded:
    """Event: all records of the log have been replayed; from here on the core decides."""

    __slots__ = ()


Effect = Hashable
"""Work outside the shard that its committed records call for: a marker to write, a request to another broker.

A value; equal values are the same work. An effect starts only after the records that call for it are committed. It is done
at least once, because a shard that is loaded again repeats what no record says is done: whoever carries it out must be able
to repeat it.
"""


class EffectDone(NamedTuple):
    """Event: an effect was carried out. `result` is what the runner of effects returned.

    The core decides what it means, mostly by a record after which the effect is no longer owed.
    """

    effect: Effect
    result: object


class TxnWriter(NamedTuple):
    """The producer in whose open transaction records are written."""

    producer_id: int
    producer_epoch: int
    verified: Verification | None = None
    """What the transaction's coordinator has agreed to, if the transaction is not open in the partition."""


class Outcome(NamedTuple, Generic[RecordT]):
    """What an event led to. `atomic` says whether the records must share one batch.

    If the log refuses the records, the replies become errors and the effects are dropped, but the timers are set all the
    same, so that a core can try again.

    `writer`: the records belong to a transaction of this producer. `marker`: a transaction ends in this partition; the marker is
    written behind the records, and replayed like a record.
    """

    records: Sequence[RecordT] = ()
    replies: Sequence[Reply] = ()
    timers: Sequence[SetTimer | CancelTimer] = ()
    atomic: bool = True
    effects: Sequence[Effect] = ()
    writer: TxnWriter | None = None
    marker: TxnMarker | None = None


class Machine(Protocol[EventT_contra, RecordT]):
    """A coordinator core."""

    def handle(
        self, event: EventT_contra | TimerFired | EffectDone | Loaded, now_ms: int
    ) -> Outcome[RecordT]:
        """Decide. Touches soft state only."""
        ...

    def replay(self, record: RecordT) -> None:
        """Apply a record: the only way hard state changes."""
        ...

    def owed_effects(self) -> Iterable[Effect]:
        """Effects that the hard state calls for and that no record says are done. Asked once all records are replayed."""
        ...

    def check(self) -> None:
        """Assert every invariant."""
        ...


StoredRecord = tuple[bytes, bytes | None]
"""Key and value as they stand in the internal topic; value None is a tombstone."""


PlainEntry = tuple[int, bytes | None, bytes | None]
"""Offset, key and value of a record that belongs to no transaction."""


class TxnEntry(NamedTuple):
    """A record of a transaction, whose marker comes later."""

    offset: int
    key: bytes | None
    value: bytes | None
    producer_id: int


class MarkerEntry(NamedTuple):
    """A marker: a producer's transaction ends here, as far as this partition is concerned."""

    offset: int
    marker: TxnMarker


LogEntry = PlainEntry | TxnEntry | MarkerEntry


class ShardLog(Protocol):
    """One partition of an internal topic, led by this broker in one leader epoch.

    Everything but `wait_committed` is synchronous and short. After leadership is lost every call
    raises `Refused(NOT_LEADER_OR_FOLLOWER)`.
    """

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of the partition. Effects carry it, so that receivers can refuse a deposed coordinator."""
        ...

    @property
    def high_watermark(self) -> int:
        """Everything below this offset is committed."""
        ...

    def read_from_start(self) -> Iterator[Sequence[LogEntry]]:
        """Chunks of entries in the order of the log, from its start to its end at the time of the call.

        Small chunks (some hundred records): the loop gets a turn between two of them. Raises `Refused`, and `CorruptBatch` for
        a damaged batch.
        """
        ...

    def append(
        self, records: Sequence[StoredRecord], now_ms: int, writer: TxnWriter | None = None
    ) -> int:
        """Append as one batch; returns the next offset. Raises `Refused`, having stored nothing."""
        ...

    def append_marker(self, marker: TxnMarker, now_ms: int) -> int:
        """End a producer's transaction; returns the next offset. Raises `Refused`, having stored nothing."""
        ...

    async def wait_committed(self, next_offset: int) -> None:
        """Return once the high watermark has reached the offset. Raises `Refused`."""
        ...
