"""What a broker tells of its connection to the controller: that it broke, unless the broker itself gave it up."""

import asyncio
from collections.abc import Callable

import pytest

from headrace.broker import controller_link
from headrace.broker.controller_link import ControllerLink
from headrace.client.async_connection import AsyncConnection
from headrace.client.exchange import Disconnected
from headrace.controller.driver import ControllerDriver, NotController
from headrace.coordination.nodes import BrokerNode, ControllerNode
from headrace.testing.memory_store import MemoryStore, MemoryTree
from headrace.wire.error_code import ErrorCode
from headrace.wire.internal import PullChangesResponse
from tests.unit.client.answers import answer_frame
from tests.unit.client.test_async_connection import MemoryTransport
from tests.unit.controller.cluster_model import PlainRules

US, CONTROLLER = 1, 2


async def told_when_it_ends(
    end: Callable[[AsyncConnection], None],
    refusal: type[Exception],
    monkeypatch: pytest.MonkeyPatch,
) -> list[int]:
    """Whose connection a link tells of when it waits for changes and the connection ends so."""
    told: list[int] = []
    connection = AsyncConnection("me")
    transport = MemoryTransport(connection)
    connection.connection_made(transport)

    async def connect(host: str, port: int, *, client_id: str) -> AsyncConnection:
        assert (host, port, client_id) == ("there", 9093, f"broker-{US}")
        return connection

    monkeypatch.setattr(controller_link, "connect", connect)
    store = MemoryStore(MemoryTree())
    await store.open()
    node = BrokerNode(
        listener_security_protocol_map={},
        endpoints=("CLIENTS://there:9092", "INTERNAL://there:9093"),
        host="there",
        port=9092,
        timestamp="0",
    )
    await store.create(BrokerNode.path(CONTROLLER), node.encode(), parents=True)
    await store.create(ControllerNode.PATH, ControllerNode(CONTROLLER, "0").encode())
    driver = ControllerDriver(store, US, config_rules=PlainRules())
    link = ControllerLink(driver, store, US, "INTERNAL", told.append)
    pulling = asyncio.create_task(link._pull(lambda _: None))
    await transport.has_written.wait()
    end(connection)
    with pytest.raises(refusal):
        await pulling
    return told


def test_a_connection_that_the_controller_ended_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(connection: AsyncConnection) -> None:
        connection.connection_lost(None)

    assert asyncio.run(told_when_it_ends(lose, Disconnected, monkeypatch)) == [CONTROLLER]


def test_one_that_was_given_up_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seat has changed hands."""
    assert asyncio.run(told_when_it_ends(AsyncConnection.abort, Disconnected, monkeypatch)) == []


def test_one_with_somebody_who_is_not_the_controller_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(connection: AsyncConnection) -> None:
        refusal = PullChangesResponse(error_code=ErrorCode.NOT_CONTROLLER)
        connection.data_received(answer_frame(0, refusal, 0))

    assert asyncio.run(told_when_it_ends(refuse, NotController, monkeypatch)) == []
