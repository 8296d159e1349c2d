"""What a coordinator core is, and what it needs from the log underneath it.

Owns the vocabulary between cores and rim: events go in, an `Outcome` comes out. A core never reads a
clock (`now_ms` is a parameter, delays are relative), never holds a future (a waiting request is a
`Token`), and changes hard state only in `replay`, so that live traffic and recovery take one path.

Order, for every event: `handle` → append the records → `replay` each of them → release the replies
once the log has committed all that was appended so far.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, NamedTuple, NewType, Protocol, TypeVar

from headrace.errors import HeadraceError
from headrace.wire.error_code import ErrorCode

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


class Outcome(NamedTuple, Generic[RecordT]):
    """What an event led to. `atomic` says whether the records must share one batch."""

    records: Sequence[RecordT] = ()
    replies: Sequence[Reply] = ()
    timers: Sequence[SetTimer | CancelTimer] = ()
    atomic: bool = True


class Machine(Protocol[EventT_contra, RecordT]):
    """A coordinator core."""

    def handle(self, event: EventT_contra | TimerFired | Loaded, now_ms: int) -> Outcome[RecordT]:
        """Decide. Touches soft state only."""
        ...

    def replay(self, record: RecordT) -> None:
        """Apply a record: the only way hard state changes."""
        ...

    def refuse(self, event: EventT_contra, error: ErrorCode) -> object:
        """The answer to an event that could not be decided or whose records were not stored."""
        ...

    def check(self) -> None:
        """Assert every invariant."""
        ...


class AppendRefused(HeadraceError):
    """The log did not take, or did not commit, the records: not leader, too few replicas, disk offline."""

    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


StoredRecord = tuple[bytes, bytes | None]
"""Key and value as they stand in the internal topic; value None is a tombstone."""


class ShardLog(Protocol):
    """One partition of an internal topic, led by this broker in one leader epoch.

    Everything but `wait_committed` is synchronous and short. After leadership is lost every call
    raises `AppendRefused(NOT_LEADER_OR_FOLLOWER)`.
    """

    @property
    def high_watermark(self) -> int:
        """Everything below this offset is committed."""
        ...

    def read_from_start(self) -> Iterator[list[tuple[int, bytes | None, bytes | None]]]:
        """Chunks of (offset, key, value), from the log's start to its end at the time of the call.

        Small chunks (some hundred records): the loop gets a turn between two of them. Control
        batches are left out. Raises `AppendRefused`, and `CorruptBatch` for a damaged batch.
        """
        ...

    def append(self, records: Sequence[StoredRecord], now_ms: int) -> int:
        """Append as one batch; returns the next offset. Raises `AppendRefused`, having stored nothing."""
        ...

    async def wait_committed(self, next_offset: int) -> None:
        """Return once the high watermark has reached the offset. Raises `AppendRefused`."""
        ...
