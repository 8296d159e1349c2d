"""A node of a topic in the coordination store that makes no sense costs that topic, and none of its records."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from headrace.broker.cluster.store_identity import STORE_FILE
from headrace.client.connection import Connection
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.nodes import PartitionStateNode, TopicNode
from headrace.coordination.store import ANY_VERSION
from headrace.wire.error_code import ErrorCode
from tests.robustness.wire_calls import create_topic, create_topic_result, fetch, produce
from tests.support.headrace_process import HeadraceProcess
from tests.support.server_process import free_port

VALUES = [[b"zero"], [b"one"], [b"two"]]


@pytest.fixture
def http_port() -> int:
    return free_port()


@pytest.fixture
def broker(tmp_path: Path, http_port: int) -> Iterator[HeadraceProcess]:
    properties = {"headrace.http.listeners": f"http://127.0.0.1:{http_port}"}
    with HeadraceProcess(tmp_path / "broker", properties=properties) as process:
        yield process


def replace_node(broker: HeadraceProcess, path: str, data: bytes) -> bytes:
    """Write a node while the broker is stopped. Returns what it held."""

    async def replace() -> bytes:
        store = EmbeddedStore(broker.data_dir / STORE_FILE)
        await store.open()
        node = await store.get(path)
        assert node is not None
        await store.set(path, data, version=ANY_VERSION)
        await store.close()
        return node.data

    return asyncio.run(replace())


def logs(broker: HeadraceProcess) -> set[str]:
    return {path.name for path in broker.data_dir.iterdir() if path.is_dir()}


@pytest.mark.parametrize("path", [PartitionStateNode.path("orders", 1), TopicNode.path("orders")])
def test_its_logs_stay_where_they_are(broker: HeadraceProcess, http_port: int, path: str) -> None:
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "orders", partitions=3)
        create_topic(connection, "payments")
        for partition, values in enumerate(VALUES):
            produce(connection, "orders", values, partition=partition)
        produce(connection, "payments", [b"value"])
    broker.stop()
    before = logs(broker)
    good = replace_node(broker, path, b"nonsense")
    broker.start()
    with Connection("127.0.0.1", broker.port) as connection:
        assert fetch(connection, "payments", 0) == [b"value"]
        assert create_topic_result(connection, "orders") == ErrorCode.TOPIC_ALREADY_EXISTS
    with urlopen(f"http://127.0.0.1:{http_port}/healthz") as page:
        (reason,) = json.loads(page.read())["reasons"]
    assert "topic orders has no leaders" in reason
    assert path in reason
    assert "topic orders has no leaders" in broker.log_tail()
    broker.stop()
    assert logs(broker) == before
    replace_node(broker, path, good)
    broker.start()
    with Connection("127.0.0.1", broker.port) as connection:
        for partition, values in enumerate(VALUES):
            assert fetch(connection, "orders", 0, partition=partition) == values
