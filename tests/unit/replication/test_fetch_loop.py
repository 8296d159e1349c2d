"""What a follower tells of its connection to the leader: that it broke, unless the follower itself gave it up."""

import asyncio
from collections.abc import Callable

import pytest

from headrace.client.async_connection import AsyncConnection
from headrace.errors import DiskFailed
from headrace.replication import fetch_loop
from headrace.replication.fetch_loop import FetchLoop, FollowerSettings
from headrace.replication.partition import Partition
from tests.unit.client.test_async_connection import MemoryTransport
from tests.unit.replication.test_fetch_session import followed

SETTINGS = FollowerSettings(
    max_wait_ms=60_000,
    min_bytes=1,
    partition_max_bytes=1_000,
    response_max_bytes=1_000,
    backoff_ms=60_000,
    socket_timeout_ms=60_000,
)


def on_disk_failed(_: Partition, error: DiskFailed) -> None:
    raise AssertionError(error)


async def times_told(end: Callable[[FetchLoop, AsyncConnection], None]) -> int:
    """How often a loop tells of a broken connection when a question is under way and it ends so."""
    loop_told = 0
    connection = AsyncConnection("me")
    transport = MemoryTransport(connection)
    connection.connection_made(transport)

    def told() -> None:
        nonlocal loop_told
        loop_told += 1

    async def connect() -> AsyncConnection:
        return connection

    loop = FetchLoop(1, connect, lambda: 7, SETTINGS, lambda: 0, on_disk_failed, on_broken=told)
    loop.add(followed("a", 0))
    serving = asyncio.create_task(loop._serve(connection))
    await transport.has_written.wait()
    end(loop, connection)
    await serving
    return loop_told


def test_a_connection_that_the_leader_ended_is_told_of() -> None:
    async def story() -> None:
        assert await times_told(lambda _, connection: connection.connection_lost(None)) == 1
        reset = ConnectionResetError("reset")
        assert await times_told(lambda _, connection: connection.connection_lost(reset)) == 1

    asyncio.run(story())


def test_one_that_was_given_up_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_loop, "_HURRY_S", 0)

    async def story() -> None:
        # For one more partition, the question is asked anew.
        assert await times_told(lambda loop, _: loop.add(followed("b", 0))) == 0

    asyncio.run(story())


def test_a_leader_that_is_silent_for_too_long_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        def time_out(_: FetchLoop, connection: AsyncConnection) -> None:
            connection._answers[0].set_exception(TimeoutError())

        assert await times_told(time_out) == 0

    asyncio.run(story())
