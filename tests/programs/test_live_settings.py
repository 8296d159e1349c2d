"""Settings of the broker that change while it runs, as its clients feel them."""

from pathlib import Path

import pytest

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.metadata import MetadataRequest
from tests.differential.requests import batch, produce

BROKER, SET, DELETE = 4, 0, 1


def connect(broker: EmbeddedBroker) -> Connection:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return Connection(host, int(port))


def alter(connection: Connection, name: str, value: str | None) -> None:
    config = AlterableConfig(
        name=name, config_operation=DELETE if value is None else SET, value=value
    )
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=[config])
    answer = connection.send(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == 0, answer


def is_served(broker: EmbeddedBroker) -> bool:
    try:
        with connect(broker) as another:
            another.send(MetadataRequest(topics=[]), 9)
    except (Disconnected, ConnectionError):
        return False
    return True


@pytest.mark.parametrize("name", ["max.connections", "max.connections.per.ip"])
def test_the_number_of_connections(name: str) -> None:
    with EmbeddedBroker() as broker, connect(broker) as first:
        assert is_served(broker)
        alter(first, name, "1")
        assert not is_served(broker)
        alter(first, name, None)
        assert is_served(broker)


def test_what_topics_inherit() -> None:
    with EmbeddedBroker() as broker, connect(broker) as connection:
        broker.create_topic("orders")
        alter(connection, "message.max.bytes", "200")
        answer = connection.send(produce("orders", batch(b"x" * 500)), 9)
        assert answer.responses[0].partition_responses[0].error_code == 10


def test_a_broker_starts_although_a_dynamic_config_breaks_a_rule_of_its_file(
    tmp_path: Path,
) -> None:
    place = {"log.dirs": str(tmp_path)}
    with EmbeddedBroker(place) as broker, connect(broker) as connection:
        alter(connection, "log.cleaner.dedupe.buffer.size", "52428800")
    with EmbeddedBroker({**place, "log.cleaner.threads": "100"}) as broker:
        assert is_served(broker)
