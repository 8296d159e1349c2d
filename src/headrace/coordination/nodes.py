"""Nodes of the coordination store: one class per kind of node, each with `path`, `encode`, `decode`.

Owns the layout, which is that of Kafka with ZooKeeper wherever Kafka has such a node (see
docs/formats/znodes.md). Must not know who reads or writes. A node's JSON carries its format's
number as "version"; a number we do not know is refused, never guessed at.
"""

from typing import Any, ClassVar, Final, Self, TypeVar
from urllib.parse import quote, unquote
from uuid import UUID

import msgspec

from headrace.errors import HeadraceError
from headrace.ids import text_of_id

T = TypeVar("T")

DEFAULT_BROKER = "<default>"

# Every node that others hang from, parents first. `membership.prepare` creates them.
ROOTS = (
    "/admin",
    "/admin/deleted_topics",
    "/brokers",
    "/brokers/epochs",
    "/brokers/ids",
    "/brokers/sessions",
    "/brokers/suspects",
    "/brokers/topics",
    "/cluster",
    "/config",
    "/config/brokers",
    "/config/client-metrics",
    "/config/clients",
    "/config/groups",
    "/config/topics",
    "/config/users",
)

_encode = msgspec.json.Encoder().encode


class MalformedNode(HeadraceError):
    """A node holds what its path does not allow; the text names the path and the fault."""


def _decode(decoder: "msgspec.json.Decoder[T]", path: str, data: bytes) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise MalformedNode(f"{path}: {error}") from error


class BrokerNode(msgspec.Struct, frozen=True, kw_only=True, tag_field="version", tag=5):
    """A living broker. Ephemeral; `created_txn` of the node is the broker's epoch."""

    ROOT: ClassVar[str] = "/brokers/ids"

    listener_security_protocol_map: dict[str, str]
    endpoints: tuple[str, ...]
    host: str | None
    port: int
    jmx_port: int = -1
    timestamp: str
    rack: str | None = None
    features: dict[str, Any] = {}
    # The epoch of the incarnation that this one follows after a clean shutdown, else -1; and the first one of the
    # unbroken row of such incarnations that it ends.
    previous_broker_epoch: int = -1
    clean_since_epoch: int = -1
    # Of the process that registered; its log directories name it, too.
    incarnation: str = ""
    # The `directory.id` of each log directory that could be opened, and how many could not.
    directories: tuple[str, ...] = ()
    offline_directories: int = 0

    @property
    def feature_levels(self) -> tuple[tuple[str, int], ...]:
        """The features that the broker knows, each with its highest level; without those that make no sense."""
        found = []
        for name, levels in sorted(self.features.items()):
            highest = levels.get("max_version") if isinstance(levels, dict) else None
            if isinstance(highest, int):
                found.append((name, highest))
        return tuple(found)

    @staticmethod
    def path(broker_id: int) -> str:
        return f"/brokers/ids/{broker_id}"

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> "BrokerNode":
        return _decode(_BROKER, cls.path(broker_id), data)


class BrokerSessionNode(msgspec.Struct, frozen=True, tag_field="version", tag=1):
    """The session of a broker lives. Ephemeral; unlike a registration it is not removed by others."""

    ROOT: ClassVar[str] = "/brokers/sessions"

    incarnation: str

    @staticmethod
    def path(broker_id: int) -> str:
        return f"/brokers/sessions/{broker_id}"

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> "BrokerSessionNode":
        return _decode(_BROKER_SESSION, cls.path(broker_id), data)


class SuspectNode:
    """One broker was refused connections to another: what a removal needs of two. Ephemeral, without data."""

    ROOT: ClassVar[str] = "/brokers/suspects"

    @staticmethod
    def path(broker_id: int, broker_epoch: int, witness_id: int) -> str:
        return f"/brokers/suspects/{broker_id}-{broker_epoch}-{witness_id}"

    @staticmethod
    def parse(name: str) -> tuple[int, int, int] | None:
        """Whom, of which epoch, and who says so; None for a name that makes no sense."""
        parts = name.split("-")
        if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
            return None
        broker_id, broker_epoch, witness_id = map(int, parts)
        return broker_id, broker_epoch, witness_id


class BrokerEpochNode(msgspec.Struct, frozen=True, tag_field="version", tag=1):
    """The last incarnation of a broker that a controller has taken into account."""

    ROOT: ClassVar[str] = "/brokers/epochs"

    epoch: int
    # The log directories that this broker is known to have. One that is missing later was lost with its logs.
    directories: tuple[str, ...] = ()

    @staticmethod
    def path(broker_id: int) -> str:
        return f"/brokers/epochs/{broker_id}"

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> "BrokerEpochNode":
        return _decode(_BROKER_EPOCH, cls.path(broker_id), data)


class ControllerNode(msgspec.Struct, frozen=True, tag_field="version", tag=1):
    """The controllership. Ephemeral."""

    PATH: ClassVar[str] = "/controller"

    brokerid: int
    timestamp: str

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "ControllerNode":
        return _decode(_CONTROLLER, cls.PATH, data)


class ControllerEpochNode:
    """How many controllers there have been: a bare number. Its version fences their writes."""

    PATH: ClassVar[str] = "/controller_epoch"

    @staticmethod
    def encode(epoch: int) -> bytes:
        return b"%d" % epoch

    @classmethod
    def decode(cls, data: bytes) -> int:
        if not data.isdigit():
            raise MalformedNode(f"{cls.PATH}: {data!r} is not a number")
        return int(data)


class ClusterIdNode(msgspec.Struct, frozen=True, tag_field="version", tag="1"):
    """The name that tells this cluster from others."""

    PATH: ClassVar[str] = "/cluster/id"

    id: str

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "ClusterIdNode":
        return _decode(_CLUSTER_ID, cls.PATH, data)


class TopicNode(msgspec.Struct, frozen=True, tag_field="version", tag=3):
    """A topic: its id, and which brokers hold which partition. Its creation creates the topic."""

    ROOT: ClassVar[str] = "/brokers/topics"

    topic_id: str
    partitions: dict[int, tuple[int, ...]]
    adding_replicas: dict[int, tuple[int, ...]] = {}
    removing_replicas: dict[int, tuple[int, ...]] = {}

    @staticmethod
    def path(topic: str) -> str:
        return f"/brokers/topics/{topic}"

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, topic: str, data: bytes) -> "TopicNode":
        node = _decode(_TOPIC, cls.path(topic), data)
        if sorted(node.partitions) != list(range(len(node.partitions))):
            raise MalformedNode(
                f"{cls.path(topic)}: partitions are not numbered from 0 without gap"
            )
        return node


def states_below(path: str, data: bytes) -> list[str] | None:
    """The paths of the states of a topic's partitions (a `Shortcut`), as far as its node tells."""
    topic = path.removeprefix(TopicNode.ROOT + "/")
    try:
        count = len(TopicNode.decode(topic, data).partitions)
    except MalformedNode:
        return None
    return [PartitionStateNode.path(topic, index) for index in range(count)]


class PartitionStateNode(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    gc=False,
    tag_field="version",
    tag=1,
):
    """Who leads a partition since which epoch, and who is in sync. Its version: partition epoch."""

    controller_epoch: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    emptied: tuple[int, ...] = ()
    min_isr: int = 0  # by which `elr` was derived; 0 if it was never written
    # Leader epochs that allow replicas to delete committed records; -1 once all are in sync again.
    unclean_epoch: int = -1
    crashed_epoch: int = -1
    last_known_epoch: int = -1  # in which the last known leader led
    former_epochs: tuple[int, ...] = ()  # the last ones before `leader_epoch`

    @staticmethod
    def folder(topic: str) -> str:
        return f"/brokers/topics/{topic}/partitions"

    @staticmethod
    def path(topic: str, partition: int) -> str:
        return f"/brokers/topics/{topic}/partitions/{partition}/state"

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, path: str, data: bytes) -> "PartitionStateNode":
        return _decode(_PARTITION_STATE, path, data)


# In force for a topic whose config cannot be read: nothing is deleted before somebody has mended it.
UNREADABLE_TOPIC_CONFIG: Final = {"retention.ms": "-1", "retention.bytes": "-1"}


class ConfigNode(msgspec.Struct, frozen=True, tag_field="version", tag=1):
    """The settings given to one topic, broker, group, client or user."""

    ROOT: ClassVar[str] = "/config"

    config: dict[str, str]

    @staticmethod
    def path(folder: str, name: str) -> str:
        """`folder` is one of /config's children; a name is written as in an address."""
        return f"/config/{folder}/{name if name == DEFAULT_BROKER else quote(name, safe='')}"

    @staticmethod
    def split(path: str) -> tuple[str, str]:
        """The folder and the name that `path` was made of."""
        folder, _, name = path.removeprefix("/config/").partition("/")
        return folder, unquote(name)

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, path: str, data: bytes) -> "ConfigNode":
        return _decode(_CONFIG, path, data)


class DeletedTopicNode(msgspec.Struct, frozen=True, tag_field="version", tag=1):
    """A deleted topic of which some brokers, perhaps away, still have to remove their replicas."""

    ROOT: ClassVar[str] = "/admin/deleted_topics"

    name: str
    pending: tuple[int, ...]

    @staticmethod
    def path(topic_id: UUID) -> str:
        return f"/admin/deleted_topics/{text_of_id(topic_id)}"

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, path: str, data: bytes) -> "DeletedTopicNode":
        return _decode(_DELETED_TOPIC, path, data)


class FeatureNode(msgspec.Struct, frozen=True, tag_field="version", tag=2):
    """The finalized level of each feature, as Kafka has them: status 1 says that they are in force."""

    PATH: ClassVar[str] = "/feature"

    features: dict[str, int]
    status: int = 1

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "FeatureNode":
        return _decode(_FEATURE, cls.PATH, data)


class ProducerIdBlockNode(msgspec.Struct, frozen=True, tag_field="version", tag=1):
    """The block of producer ids given out last. Numbers as text, as Kafka has them."""

    PATH: ClassVar[str] = "/latest_producer_id_block"

    broker: int
    block_start: str
    block_end: str  # inclusive

    @classmethod
    def of(cls, broker: int, start: int, length: int) -> Self:
        return cls(broker, str(start), str(start + length - 1))

    @property
    def next_start(self) -> int:
        """Where the next block starts."""
        return int(self.block_end) + 1

    def encode(self) -> bytes:
        return _encode(self)

    @classmethod
    def decode(cls, data: bytes) -> "ProducerIdBlockNode":
        return _decode(_PRODUCER_ID_BLOCK, cls.PATH, data)


_BROKER = msgspec.json.Decoder(BrokerNode)
_BROKER_SESSION = msgspec.json.Decoder(BrokerSessionNode)
_BROKER_EPOCH = msgspec.json.Decoder(BrokerEpochNode)
_CONTROLLER = msgspec.json.Decoder(ControllerNode)
_CLUSTER_ID = msgspec.json.Decoder(ClusterIdNode)
_TOPIC = msgspec.json.Decoder(TopicNode)
_PARTITION_STATE = msgspec.json.Decoder(PartitionStateNode)
_CONFIG = msgspec.json.Decoder(ConfigNode)
_DELETED_TOPIC = msgspec.json.Decoder(DeletedTopicNode)
_FEATURE = msgspec.json.Decoder(FeatureNode)
_PRODUCER_ID_BLOCK = msgspec.json.Decoder(ProducerIdBlockNode)
