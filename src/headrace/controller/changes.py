"""Changes of the cluster state: the ordered records from which every `ClusterState` is built.

Owns their bytes as well: brokers pull them from the controller as JSON. A change says what is so
from now on, never what was asked for. A reader ignores fields that it does not know. A kind that it does not know is refused, because
skipping it would leave a false picture, unless the writer says that the kind may be skipped (`SKIPPABLE_KINDS`).
"""

from collections.abc import Sequence
from typing import Any, Final, get_args
from uuid import UUID

import msgspec

from headrace.controller.values import Broker, ConfigKind, PartitionState
from headrace.errors import MalformedMessage


class ControllerElected(msgspec.Struct, frozen=True, tag="controller"):
    """A broker took the controllership. The first change of each controller's stream, and of each snapshot.

    `unreadable_topics` are in the coordination store but make no sense there: name → what is wrong. They are led by nobody,
    and brokers leave their logs as they are.
    """

    broker_id: int
    controller_epoch: int
    unreadable_topics: dict[str, str] = {}


class BrokerRegistered(msgspec.Struct, frozen=True, tag="broker"):
    """A broker came, came back, or changed how it can be reached."""

    broker: Broker


class BrokerShuttingDown(msgspec.Struct, frozen=True, tag="broker_shutting_down"):
    """A broker asked to be relieved of its leaderships."""

    broker_id: int


class BrokerUnregistered(msgspec.Struct, frozen=True, tag="broker_gone"):
    """A broker left or was lost."""

    broker_id: int


class TopicCreated(msgspec.Struct, frozen=True, tag="topic"):
    """A topic exists, with these partitions from 0 on."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionState, ...]


class PartitionsAdded(msgspec.Struct, frozen=True, tag="partitions_added"):
    """A topic has more partitions: `first` and following."""

    topic: str
    first: int
    partitions: tuple[PartitionState, ...]


class PartitionChanged(msgspec.Struct, frozen=True, tag="partition"):
    """A partition's replicas, leader or ISR changed."""

    topic: str
    index: int
    partition: PartitionState


class TopicDeleted(msgspec.Struct, frozen=True, tag="topic_deleted"):
    """A topic is gone; the pending brokers have to remove their replicas of it."""

    name: str
    topic_id: UUID
    pending: tuple[int, ...]


class ReplicasRemoved(msgspec.Struct, frozen=True, tag="replicas_removed"):
    """A broker has removed its replicas of a deleted topic."""

    topic_id: UUID
    broker_id: int


class ConfigChanged(msgspec.Struct, frozen=True, tag="config"):
    """All that is set for one topic, broker or group; empty when nothing is."""

    kind: ConfigKind
    name: str
    values: dict[str, str]


class ProducerIdsAllocated(msgspec.Struct, frozen=True, tag="producer_ids"):
    """Producer ids below this one have been given out."""

    next_producer_id: int


class FeaturesFinalized(msgspec.Struct, frozen=True, tag="features"):
    """These levels of features are in force; the epoch grows with every change."""

    levels: dict[str, int]
    epoch: int


Change = (
    ControllerElected
    | BrokerRegistered
    | BrokerShuttingDown
    | BrokerUnregistered
    | TopicCreated
    | PartitionsAdded
    | PartitionChanged
    | TopicDeleted
    | ReplicasRemoved
    | ConfigChanged
    | ProducerIdsAllocated
    | FeaturesFinalized
)


# Tags of the kinds that an older broker may skip, because without them it serves everything that it knows as before. A kind
# belongs here if nothing that brokers agree on (topics, leaders, configs that act) depends on it where it is not known. A
# feature does, when the controller finalizes it only after every registered broker has declared to know it.
SKIPPABLE_KINDS: Final[frozenset[str]] = frozenset(("features",))


class ChangeBatch(msgspec.Struct, frozen=True):
    """Changes at consecutive offsets of one controller's stream.

    A snapshot rebuilds the whole state: its reader starts from an empty one, and goes on at
    `next_offset`, whatever the number of changes that the snapshot holds.
    """

    controller_epoch: int
    next_offset: int
    changes: tuple[Change, ...]
    is_snapshot: bool = False
    skippable: tuple[str, ...] = ()  # kinds in here that a reader skips if it does not know them


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ChangeBatch)
_change_decoder: Final = msgspec.json.Decoder(Change)


def encode(batch: ChangeBatch) -> bytes:
    """The bytes of a batch, as a broker receives them."""
    if SKIPPABLE_KINDS:
        kinds = {str(change.__struct_config__.tag) for change in batch.changes}
        batch = msgspec.structs.replace(batch, skippable=tuple(sorted(kinds & SKIPPABLE_KINDS)))
    return _encoder.encode(batch)


def decode(data: bytes) -> ChangeBatch:
    """The batch that `encode` wrote, here or in another version of Headrace. Raises MalformedMessage."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        try:
            return _decode_known(data)
        except msgspec.MsgspecError:
            raise MalformedMessage(str(error)) from error


def _decode_known(data: bytes) -> ChangeBatch:
    """The batch without the changes that a reader skips if it does not know them. Raises MsgspecError."""
    content = msgspec.json.decode(data, type=_OtherVersion)
    known: list[Change] = []
    for raw in content.changes:
        kind = msgspec.json.decode(raw, type=dict[str, Any]).get("type")
        if kind in _KINDS or kind not in content.skippable:
            known.append(_change_decoder.decode(raw))
    return ChangeBatch(
        content.controller_epoch,
        content.next_offset,
        tuple(known),
        content.is_snapshot,
        content.skippable,
    )


class _OtherVersion(msgspec.Struct, frozen=True):
    """A `ChangeBatch` whose changes may be of unknown kinds."""

    controller_epoch: int
    next_offset: int
    changes: tuple[msgspec.Raw, ...]
    is_snapshot: bool = False
    skippable: tuple[str, ...] = ()


_KINDS: Final = frozenset(kind.__struct_config__.tag for kind in get_args(Change))


class ChangeGate:
    """Passes the changes of one controller after another to a broker, and drops those of an earlier controller."""

    __slots__ = ("_newest_epoch",)

    def __init__(self) -> None:
        self._newest_epoch = -1

    def admits(self, batch: ChangeBatch) -> bool:
        """Whether this batch is to be applied."""
        if batch.controller_epoch < self._newest_epoch:
            return False
        self._newest_epoch = batch.controller_epoch
        return True


class ChangeLog:
    """The recent changes of one controller's stream, and where the stream stands."""

    __slots__ = ("_changes", "_epoch", "_first_offset", "_limit")

    def __init__(
        self, controller_epoch: int, *, first_offset: int = 0, limit: int = 100_000
    ) -> None:
        self._epoch = controller_epoch
        self._limit = limit
        self._first_offset = first_offset
        self._changes: list[Change] = []

    @property
    def next_offset(self) -> int:
        """The offset of the next change."""
        return self._first_offset + len(self._changes)

    def append(self, changes: Sequence[Change]) -> ChangeBatch:
        """Add changes; the oldest are forgotten beyond the limit, half of it at a time."""
        self._changes.extend(changes)
        if len(self._changes) > self._limit:
            surplus = len(self._changes) - self._limit // 2
            del self._changes[:surplus]
            self._first_offset += surplus
        return ChangeBatch(self._epoch, self.next_offset, tuple(changes))

    def read(self, controller_epoch: int, offset: int) -> ChangeBatch | None:
        """The changes from `offset` on, or None when only a snapshot can serve that reader."""
        if controller_epoch != self._epoch:
            return None
        if not self._first_offset <= offset <= self.next_offset:
            return None
        return ChangeBatch(
            self._epoch, self.next_offset, tuple(self._changes[offset - self._first_offset :])
        )
