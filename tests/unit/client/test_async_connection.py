"""The pipelined connection over a transport in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest

from headrace.broker.main import new_loop
from headrace.client.async_connection import AsyncConnection, connect
from headrace.client.exchange import Disconnected
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.unit.client.answers import answer_frame


class MemoryTransport(asyncio.Transport):
    """Keeps what was written; loses the connection when told to."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self.written = bytearray()
        self.has_written = asyncio.Event()
        self._protocol = protocol
        self._closing = False

    def writelines(self, pieces: Iterable[bytes | bytearray | memoryview]) -> None:
        for piece in pieces:
            self.written += piece
        self.has_written.set()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        asyncio.get_running_loop().call_soon(self._protocol.connection_lost, None)

    abort = close


Scenario = Callable[[AsyncConnection, MemoryTransport], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def main() -> None:
        connection = AsyncConnection("me")
        transport = MemoryTransport(connection)
        connection.connection_made(transport)
        await asyncio.wait_for(scenario(connection, transport), timeout=10)

    asyncio.run(main())


def beat(code: int, correlation_id: int) -> bytes:
    return answer_frame(correlation_id, HeartbeatResponse(error_code=code), 4)


def start(connection: AsyncConnection) -> asyncio.Task[HeartbeatResponse]:
    return asyncio.create_task(connection.send(HeartbeatRequest(), 4))


def test_several_requests_are_under_way_and_answered_in_order() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        tasks = [start(connection) for _ in range(3)]
        await asyncio.sleep(0)
        assert transport.written.count(b"\0\x0c\0\4") == 3
        stream = beat(1, 0) + beat(2, 1) + beat(3, 2)
        connection.data_received(stream[:20])
        connection.data_received(stream[20:])
        assert [answer.error_code for answer in await asyncio.gather(*tasks)] == [1, 2, 3]

    run(scenario)


def test_a_caller_that_gave_up_does_not_shift_the_answers() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        first, second = start(connection), start(connection)
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        connection.data_received(beat(1, 0) + beat(2, 1))
        assert (await second).error_code == 2
        assert first.cancelled()

    run(scenario)


def test_everything_that_waits_fails_when_the_connection_is_lost() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        tasks = [start(connection) for _ in range(2)]
        await asyncio.sleep(0)
        connection.connection_lost(ConnectionResetError("reset"))
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [str(result) for result in results] == ["reset", "reset"]
        assert not connection.is_open
        with pytest.raises(Disconnected):
            await connection.send(HeartbeatRequest(), 4)

    run(scenario)


def test_who_ended_the_connection_is_known() -> None:
    async def broken_off(connection: AsyncConnection, _: MemoryTransport) -> None:
        connection.connection_lost(None)
        assert connection.was_broken_off
        await connection.close()
        assert connection.was_broken_off, "there was nothing left to close"

    async def closed(connection: AsyncConnection, _: MemoryTransport) -> None:
        await connection.close()
        assert not connection.was_broken_off

    async def aborted(connection: AsyncConnection, _: MemoryTransport) -> None:
        connection.abort()
        await asyncio.sleep(0)
        assert not connection.is_open
        assert not connection.was_broken_off

    async def talked_nonsense(connection: AsyncConnection, _: MemoryTransport) -> None:
        connection.data_received(beat(0, 77))
        await asyncio.sleep(0)
        assert not connection.is_open
        assert not connection.was_broken_off

    for scenario in (broken_off, closed, aborted, talked_nonsense):
        run(scenario)


def test_nonsense_ends_the_connection() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        task = start(connection)
        await asyncio.sleep(0)
        connection.data_received(beat(0, 77))
        with pytest.raises(Disconnected, match="does not speak the protocol"):
            await task

    run(scenario)


def test_nothing_is_sent_while_the_transport_is_full() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        connection.pause_writing()
        task = start(connection)
        await asyncio.sleep(0)
        assert not transport.written
        connection.resume_writing()
        await asyncio.sleep(0)
        assert transport.written
        connection.data_received(beat(0, 0))
        await task

    run(scenario)


def test_a_version_is_chosen_from_what_the_peer_offers() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        task = asyncio.create_task(connection.send(HeartbeatRequest()))
        await asyncio.sleep(0)
        offer = ApiVersionsResponse(api_keys=[ApiVersion(api_key=12, min_version=0, max_version=3)])
        connection.data_received(answer_frame(0, offer, 4))
        await asyncio.sleep(0)
        connection.data_received(answer_frame(1, HeartbeatResponse(error_code=5), 3))
        assert (await task).error_code == 5

    run(scenario)


def test_versions_are_asked_for_again_in_the_version_the_peer_knows() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        task = asyncio.create_task(connection.negotiate())
        await asyncio.sleep(0)
        refusal = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)],
        )
        connection.data_received(answer_frame(0, refusal, 0))
        await asyncio.sleep(0)
        assert b"\0\x12\0\2" in transport.written
        offer = ApiVersionsResponse(api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)])
        connection.data_received(answer_frame(1, offer, 2))
        assert await task == {18: (0, 2)}

    run(scenario)


def test_closing_waits_until_it_is_closed() -> None:
    async def scenario(connection: AsyncConnection, transport: MemoryTransport) -> None:
        await connection.close()
        assert not connection.is_open
        with pytest.raises(Disconnected):
            await connection.tell(HeartbeatRequest(), 4)

    run(scenario)


@pytest.mark.parametrize("host", ["kafka..example", "a" * 64 + ".example", "nul\0"])
def test_an_address_that_cannot_be_dialled_is_a_lost_connection(host: str) -> None:
    """A broker dials what other brokers advertise: their mistakes must not end it."""

    async def story() -> None:
        with pytest.raises(Disconnected, match="9092"):
            await connect(host, 9092)

    for loop_factory in (new_loop(), None):
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(story())
