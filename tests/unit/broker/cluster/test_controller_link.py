"""A broker's link to the controller: when it tells of a broken connection, and what it makes of another version."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from headrace.broker.cluster.controller_call import ask_controller as ask_for_client
from headrace.broker.cluster.controller_link import ControllerLink
from headrace.broker.internal_apis import ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.client.async_connection import AsyncConnection
from headrace.client.exchange import Disconnected
from headrace.controller.driver import NotController
from headrace.controller.features import FeatureUpdate, UpdateFeatures
from headrace.controller.producer_ids import AllocateProducerIds
from headrace.coordination.nodes import BrokerNode, ControllerNode
from headrace.coordination.store import ANY_VERSION, StoreFailed
from headrace.testing.memory_store import MemoryStore, MemoryTree
from headrace.wire.error_code import ErrorCode
from headrace.wire.internal import (
    AskControllerRequest,
    AskControllerResponse,
    PullChangesResponse,
)
from headrace.wire.refusal import Refusal
from tests.support.controllers import make_driver
from tests.unit.broker.apis.one_broker import connection_to
from tests.unit.client.answers import answer_frame
from tests.unit.client.test_async_connection import MemoryTransport
from tests.unit.controller.cluster_model import PlainRules

US, CONTROLLER, NEXT = 1, 2, 3


async def not_dialled(host: str, port: int, *, client_id: str) -> AsyncConnection:
    raise AssertionError(f"{host} is dialled")


async def store_with_controller() -> MemoryStore:
    store = MemoryStore(MemoryTree())
    await store.open()
    await register(store, CONTROLLER, "there")
    await store.create(ControllerNode.PATH, ControllerNode(CONTROLLER, "0").encode())
    return store


async def register(store: MemoryStore, broker_id: int, host: str) -> None:
    node = BrokerNode(
        listener_security_protocol_map={},
        endpoints=(f"CLIENTS://{host}:9092", f"INTERNAL://{host}:9093"),
        host=host,
        port=9092,
        timestamp="0",
    )
    await store.create(BrokerNode.path(broker_id), node.encode(), parents=True)


async def told_when_it_ends(
    end: Callable[[AsyncConnection], None], refusal: type[Exception]
) -> list[int]:
    """Whose connection a link tells of when it waits for changes and the connection ends so."""
    told: list[int] = []
    connection = AsyncConnection("me")
    transport = MemoryTransport(connection)
    connection.connection_made(transport)

    async def connect(host: str, port: int, *, client_id: str) -> AsyncConnection:
        assert (host, port, client_id) == ("there", 9093, f"broker-{US}")
        return connection

    store = await store_with_controller()
    driver = make_driver(store, US, PlainRules())
    link = ControllerLink(driver, store, US, "INTERNAL", connect, told.append)
    pulling = asyncio.create_task(link._pull(lambda _: None))
    await transport.has_written.wait()
    end(connection)
    with pytest.raises(refusal):
        await pulling
    return told


def test_a_connection_that_the_controller_ended_is_told_of() -> None:
    def lose(connection: AsyncConnection) -> None:
        connection.connection_lost(None)

    assert asyncio.run(told_when_it_ends(lose, Disconnected)) == [CONTROLLER]


def test_one_that_was_given_up_is_not() -> None:
    """The controllership has changed hands."""
    assert asyncio.run(told_when_it_ends(AsyncConnection.abort, Disconnected)) == []


def test_one_with_somebody_who_is_not_the_controller_is_not() -> None:
    def refuse(connection: AsyncConnection) -> None:
        refusal = PullChangesResponse(error_code=ErrorCode.NOT_CONTROLLER)
        connection.data_received(answer_frame(0, refusal, 0))

    assert asyncio.run(told_when_it_ends(refuse, NotController)) == []


def test_a_dial_is_given_up_when_another_broker_is_the_controller() -> None:
    """The machine of the former controller is gone: nothing answers, for as long as the system tries."""

    async def story() -> None:
        store = await store_with_controller()
        await register(store, NEXT, "elsewhere")
        dialled: asyncio.Queue[str] = asyncio.Queue()

        async def connect(host: str, port: int, *, client_id: str) -> AsyncConnection:
            dialled.put_nowait(host)
            await asyncio.Event().wait()
            raise AssertionError("never")

        link = ControllerLink(make_driver(store, US, PlainRules()), store, US, "INTERNAL", connect)
        following = asyncio.create_task(link.follow(lambda _: None))
        assert await dialled.get() == "there"
        asking = asyncio.create_task(link.ask(AllocateProducerIds(broker_id=1, broker_epoch=1)))
        assert await dialled.get() == "there"
        await store.set(
            ControllerNode.PATH, ControllerNode(NEXT, "0").encode(), version=ANY_VERSION
        )
        async with asyncio.timeout(20):
            assert [await dialled.get() for _ in range(2)] == ["elsewhere", "elsewhere"]
        for task in (asking, following):
            task.cancel()
        await asyncio.gather(asking, following, return_exceptions=True)

    asyncio.run(story())


def test_a_question_of_a_newer_broker_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    """The connection stays, and so does what else is asked over it."""

    async def ask() -> int:
        store = MemoryStore(MemoryTree())
        driver = make_driver(store, US, PlainRules())
        request = AskControllerRequest(kind="AskedLater", event=b"")
        context = RequestContext(request.API_KEY, 0, f"broker-{CONTROLLER}", connection_to())
        return (await ask_controller.handle(request, context, driver=driver)).error_code

    assert asyncio.run(ask()) == ErrorCode.UNSUPPORTED_VERSION
    assert "client broker-2 asks what this controller does not know: 'AskedLater'" in caplog.text


def test_an_answer_of_a_newer_controller_is_a_failure_that_callers_expect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        connection = AsyncConnection("me")
        transport = MemoryTransport(connection)
        connection.connection_made(transport)
        store = MemoryStore(MemoryTree())
        driver = make_driver(store, US, PlainRules())
        link = ControllerLink(driver, store, US, "INTERNAL", not_dialled)

        async def asking() -> AsyncConnection:
            return connection

        monkeypatch.setattr(link, "_asking_connection", asking)
        waiting = asyncio.create_task(link.ask(AllocateProducerIds(broker_id=1, broker_epoch=1)))
        await transport.has_written.wait()
        response = AskControllerResponse(answer=msgspec.msgpack.encode({"error": 30_000}))
        connection.data_received(answer_frame(0, response, 0))
        with pytest.raises(StoreFailed, match="another version"):
            await waiting

    asyncio.run(story())


def test_an_older_controller_does_not_know_what_clients_ask(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No retriable error: asking again helps only when the controller has been upgraded."""

    async def story() -> None:
        connection = AsyncConnection("me")
        transport = MemoryTransport(connection)
        connection.connection_made(transport)
        store = MemoryStore(MemoryTree())
        driver = make_driver(store, US, PlainRules())
        link = ControllerLink(driver, store, US, "INTERNAL", not_dialled)

        async def asking() -> AsyncConnection:
            return connection

        monkeypatch.setattr(link, "_asking_connection", asking)
        updates = (FeatureUpdate(name="transaction.version", level=1),)
        waiting = asyncio.create_task(ask_for_client(link.ask(UpdateFeatures(updates=updates))))
        await transport.has_written.wait()
        response = AskControllerResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        connection.data_received(answer_frame(0, response, 0))
        refused = await waiting
        assert isinstance(refused, Refusal)
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert "UpdateFeatures" in str(refused.message)

    asyncio.run(story())
