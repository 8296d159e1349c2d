"""A client's connections to the brokers of a simulated cluster, and what it knows of topics and their leaders.

Owns one connection to each broker that it talks to. A request that is not answered in time costs its connection, as in
every client, and nobody knows what came of it.
"""

import asyncio
from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple, Protocol
from uuid import UUID

from headrace.client.async_connection import AsyncConnection, connect
from headrace.client.exchange import Disconnected, R
from headrace.testing.simulation.broker import PORT, host_of
from headrace.testing.simulation.invariants import Invariants
from headrace.testing.simulation.story import Story
from headrace.testing.virtual.world import VirtualWorld
from headrace.wire.message import Request
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

_METADATA_VERSION: Final = 12
TIMEOUT_S: Final = 2.0


class Unanswered(Exception):
    """No answer came, and perhaps none will: what was asked may or may not have been done."""


class ClientAround(Protocol):
    """What clients need of the simulated cluster."""

    seed: int
    world: VirtualWorld
    story: Story
    invariants: Invariants

    @property
    def broker_ids(self) -> list[int]:
        """The brokers, up or down."""

    def wall_clock_ms(self) -> int:
        """A client's clock."""

    @property
    def is_resting(self) -> bool:
        """Whether clients shall finish what they have begun, and begin nothing for a while."""

    @property
    def is_over(self) -> bool:
        """Whether clients shall finish what they have begun, and end."""

    def fail(self, error: BaseException) -> None:
        """Something that must never happen has happened."""


class KnownPartition(NamedTuple):
    """A partition as the newest metadata shows it."""

    leader: int
    leader_epoch: int


class KnownTopic(NamedTuple):
    """A topic as the newest metadata shows it."""

    topic_id: UUID
    partitions: dict[int, KnownPartition]


class WireClient:
    """The connections of one client; used on one event loop."""

    def __init__(self, around: ClientAround, name: str) -> None:
        self.around = around
        self.name = name
        self.chance = Random(f"{around.seed}:{name}")
        self._connections: dict[int, AsyncConnection] = {}
        self._dialling: dict[int, asyncio.Lock] = {}
        self._topics: dict[str, KnownTopic] = {}

    async def connection(self, broker_id: int) -> AsyncConnection:
        """A connection that is open, made now if there is none. Raises Unanswered."""
        async with self._dialling.setdefault(broker_id, asyncio.Lock()):
            known = self._connections.get(broker_id)
            if known is not None and known.is_open:
                return known
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    made = await connect(host_of(broker_id), PORT, client_id=self.name)
            except (Disconnected, TimeoutError) as error:
                raise Unanswered(str(error)) from error
            self._connections[broker_id] = made
            return made

    async def call(
        self, broker_id: int, request: Request[R], version: int, timeout_s: float = TIMEOUT_S
    ) -> R:
        """Ask a broker. Raises Unanswered."""
        connection = await self.connection(broker_id)
        try:
            async with asyncio.timeout(timeout_s):
                return await connection.send(request, version)
        except Disconnected as error:
            raise Unanswered(str(error)) from error
        except TimeoutError as error:
            connection.abort()
            raise Unanswered("no answer in time") from error

    async def call_any(self, request: Request[R], version: int, timeout_s: float = TIMEOUT_S) -> R:
        """Ask one of the brokers. Raises Unanswered."""
        return await self.call(self.any_broker(), request, version, timeout_s)

    def any_broker(self) -> int:
        """One of the brokers."""
        return self.chance.choice(self.around.broker_ids)

    def close(self) -> None:
        """Drop all connections."""
        for connection in self._connections.values():
            connection.abort()
        self._connections.clear()

    # ---- metadata

    async def topic(self, name: str) -> KnownTopic | None:
        """What is known of a topic; asks if nothing is."""
        return self._topics.get(name) or await self.learn(name)

    async def learn(self, name: str) -> KnownTopic | None:
        """Ask some broker, which may be behind; what is known already is not replaced by older."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
        )
        try:
            answer = await self.call_any(request, _METADATA_VERSION)
        except Unanswered:
            return self._topics.get(name)
        [topic] = answer.topics
        if topic.error_code:
            return self._topics.get(name)
        known = self._topics.get(name)
        before = known.partitions if known is not None and known.topic_id == topic.topic_id else {}
        partitions = dict(before)
        for each in topic.partitions:
            index, found = each.partition_index, KnownPartition(each.leader_id, each.leader_epoch)
            if index not in before or before[index].leader_epoch <= found.leader_epoch:
                partitions[index] = found
        self._topics[name] = KnownTopic(topic.topic_id, partitions)
        return self._topics[name]

    def forget(self, name: str) -> None:
        """What was known of a topic is wrong."""
        self._topics.pop(name, None)

    async def pause(self, most_s: float) -> None:
        """Wait for a while, drawn from the seed."""
        await asyncio.sleep(0.001 + self.chance.random() * most_s)


def bootstrap_servers(broker_ids: Iterable[int]) -> str:
    """What a client's setting of that name says."""
    return ",".join(f"{host_of(each)}:{PORT}" for each in broker_ids)
