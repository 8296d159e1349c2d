"""One broker for all: each test has topics of its own."""

from collections.abc import Iterator
from itertools import count

import pytest

from headrace.client.connection import Connection
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.wire.message import UUID
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

_numbers = count()


class Peer:
    """A connection to the broker, and new topics for the asking."""

    def __init__(self, broker: EmbeddedBroker) -> None:
        self._broker = broker
        self.connection = self.connect()

    def connect(self) -> Connection:
        host, _, port = self._broker.bootstrap_servers.rpartition(":")
        return Connection(host, int(port))

    def topic(self, partitions: int = 1, **config: str) -> str:
        name = f"pitfall-{next(_numbers)}"
        self._broker.create_topic(name, partitions, -1, **config)
        return name

    def topic_id(self, name: str) -> UUID:
        answer = self.connection.send(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12)
        return answer.topics[0].topic_id


@pytest.fixture(scope="session")
def pitfall_broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def peer(pitfall_broker: EmbeddedBroker) -> Iterator[Peer]:
    peer = Peer(pitfall_broker)
    yield peer
    peer.connection.close()
