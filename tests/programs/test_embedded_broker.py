"""The embedded broker: there in no time, empty for every test, the same broker as any other."""

import time
from collections.abc import Callable

import pytest

from headrace.client.connection import Connection
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.wire.messages.metadata import MetadataRequest
from tests.differential.requests import LATEST, batch, list_offsets, produce

READY_S = RESET_S = 0.3
ATTEMPTS = 5  # other work may share the machine: the best counts


def connect(broker: EmbeddedBroker) -> Connection:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return Connection(host, int(port))


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@pytest.mark.parametrize("turn", [1, 2])
def test_every_test_finds_it_empty(headrace_broker: EmbeddedBroker, turn: int) -> None:
    with connect(headrace_broker) as connection:
        assert list(connection.send(MetadataRequest(topics=None), 12).topics) == [], turn
        headrace_broker.create_topic("orders", 3, cleanup_policy="compact")
        answer = connection.send(produce("orders", batch(b"a", b"b")), 9)
        assert answer.responses[0].partition_responses[0].base_offset == 0
        (found,) = connection.send(list_offsets("orders", LATEST), 7).topics[0].partitions
        assert found.offset == 2


def test_it_is_ready_and_reset_in_no_time() -> None:
    starts, resets = [], []
    for _ in range(ATTEMPTS):
        broker = EmbeddedBroker()
        starts.append(seconds(broker.start))
        try:
            for number in range(5):
                broker.create_topic(f"topic-{number}", 4)
            resets.append(seconds(broker.reset))
        finally:
            broker.stop()
    assert min(starts) < READY_S, starts
    assert min(resets) < RESET_S, resets
