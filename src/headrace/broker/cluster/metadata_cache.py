"""Cache of encoded Metadata answers about all topics, because encoding ten thousand partitions takes long.

Owns when an answer is out of date. When the cluster state changes, only the changed topics are encoded again. The content of a
topic's entry is left to `apis.metadata`. The key holds everything else that an entry depends on: the addresses that the client
is told, the registered brokers, the options of the request.
"""

from collections.abc import Callable, Hashable
from struct import Struct
from typing import Final
from uuid import UUID

from headrace.controller.cluster_state import ClusterState, Topic
from headrace.controller.values import PartitionState
from headrace.wire.codec import Piece, encode, is_flexible, struct_encoder
from headrace.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from headrace.wire.primitives import unsigned_varint

_MAX_KEPT: Final = 16
_INT32: Final = Struct(">i")


class _Kept:
    """An encoded answer and the encoded topics that it contains."""

    __slots__ = ("body", "state", "state_version", "topics")

    def __init__(self) -> None:
        self.body = b""
        self.state: ClusterState | None = None
        self.state_version = -1
        self.topics: dict[UUID, tuple[list[PartitionState], bytes]] = {}


class MetadataCache:
    """One broker's."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[tuple[int, Hashable], _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def body(
        self,
        state: ClusterState,
        version: int,
        key: Hashable,
        *,
        frame: Callable[[], MetadataResponse],
        describe: Callable[[Topic], MetadataResponseTopic],
    ) -> list[Piece]:
        """The encoded answer: `frame` without topics, and in it every topic of the state as `describe` has it."""
        kept = self._kept.get((version, key))
        if kept is None:
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            kept = self._kept[version, key] = _Kept()
        if kept.state is not state or kept.state_version != state.version:
            kept.topics = _encoded_topics(state, version, kept.topics, describe)
            kept.body = _spliced(frame(), version, [encoded for _, encoded in kept.topics.values()])
            kept.state, kept.state_version = state, state.version
        return [kept.body]


def _encoded_topics(
    state: ClusterState,
    version: int,
    known: dict[UUID, tuple[list[PartitionState], bytes]],
    describe: Callable[[Topic], MetadataResponseTopic],
) -> dict[UUID, tuple[list[PartitionState], bytes]]:
    write = struct_encoder(MetadataResponseTopic, version, MetadataResponse)
    encoded: dict[UUID, tuple[list[PartitionState], bytes]] = {}
    for topic_id, topic in state.topics_by_id.items():
        entry = known.get(topic_id)
        # Mostly the same objects, so that comparing them is cheap.
        if entry is None or entry[0] != topic.partitions:
            pieces: list[Piece] = []
            write(describe(topic), pieces.append)
            entry = topic.partitions.copy(), b"".join(pieces)
        encoded[topic_id] = entry
    return encoded


def _spliced(frame: MetadataResponse, version: int, topics: list[bytes]) -> bytes:
    """The frame with these topics in the place of its empty array."""
    body = encode(frame, version)
    flexible = is_flexible(MetadataResponse, version)
    after = (4 if 8 <= version <= 10 else 0) + (2 if version >= 13 else 0) + flexible
    before = len(body) - after - (1 if flexible else _INT32.size)
    count = unsigned_varint(len(topics) + 1) if flexible else _INT32.pack(len(topics))
    return b"".join((body[:before], count, *topics, body[len(body) - after :]))
