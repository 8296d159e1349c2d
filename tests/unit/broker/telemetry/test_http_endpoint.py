"""The HTTP endpoint over real sockets, and the broker's two pages behind it."""

import asyncio
import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import NamedTuple

import pytest

from headrace.broker.lifecycle import BrokerState, Lifecycle
from headrace.broker.net.network import SocketNetwork
from headrace.broker.pages.health import check_health
from headrace.broker.pages.http_pages import http_pages
from headrace.broker.telemetry.http_endpoint import HttpAnswer, HttpEndpoint, HttpLimits, Route
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.settings.listener import Listener
from headrace.testing.memory_disk import MemoryDisk
from tests.unit.broker.pages.metrics_text import Page
from tests.unit.broker.pages.metrics_world import START_MS, TOPIC_ID, World

LOOPBACK = Listener("HTTP", "127.0.0.1", 0, "HTTP")
LISTEN = SocketNetwork().listen_for_streams
PIECES = ("first ", "größer ", "", "last")


def text_page() -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, "text/plain", "näher\n")


def page_in_pieces() -> HttpAnswer:
    return HttpAnswer(HTTPStatus.OK, "text/plain", iter(PIECES))


def page_that_breaks() -> HttpAnswer:
    def body() -> Iterator[str]:
        yield "half "
        raise ValueError("no second half")

    return HttpAnswer(HTTPStatus.OK, "text/plain", body())


ROUTES: dict[str, Route] = {
    "/text": text_page,
    "/pieces": page_in_pieces,
    "/broken": page_that_breaks,
}


class Reply(NamedTuple):
    status: int
    fields: dict[str, str]
    body: bytes


async def exchange(port: int, request: bytes, *, ends: bool = False) -> bytes:
    """Everything that comes back until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        if ends:
            writer.write_eof()
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


def parse(answer: bytes) -> Reply:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    version, status, _ = first.split(" ", 2)
    assert version == "HTTP/1.1"
    fields = dict(line.split(": ", 1) for line in rest)
    return Reply(int(status), fields, body)


def unchunked(body: bytes) -> list[bytes]:
    chunks: list[bytes] = []
    while True:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        chunk, end, body = rest[:length], rest[length : length + 2], rest[length + 2 :]
        assert end == b"\r\n"
        if not length:
            assert not body
            return chunks
        chunks.append(chunk)


def ask(request: bytes, routes: dict[str, Route] = ROUTES, *, ends: bool = False) -> bytes:
    async def run() -> bytes:
        async with HttpEndpoint([LOOPBACK], routes, LISTEN) as endpoint:
            return await exchange(endpoint.ports[0], request, ends=ends)

    return asyncio.run(run())


def get(path: str, routes: dict[str, Route] = ROUTES) -> Reply:
    return parse(ask(f"GET {path} HTTP/1.1\r\nHost: me\r\n\r\n".encode(), routes))


def test_a_page_of_known_length() -> None:
    reply = get("/text?verbose=1")
    assert reply.status == 200
    assert reply.body == "näher\n".encode()
    assert reply.fields["Content-Length"] == str(len(reply.body))
    assert reply.fields["Content-Type"] == "text/plain"
    assert reply.fields["Connection"] == "close"


def test_a_page_in_pieces_goes_out_in_chunks() -> None:
    reply = get("/pieces")
    assert reply.fields["Transfer-Encoding"] == "chunked"
    assert "Content-Length" not in reply.fields
    assert unchunked(reply.body) == [piece.encode() for piece in PIECES if piece]


def test_an_old_client_gets_the_pieces_without_chunks() -> None:
    reply = parse(ask(b"GET /pieces HTTP/1.0\r\n\r\n"))
    assert "Transfer-Encoding" not in reply.fields
    assert reply.body == "".join(PIECES).encode()


@pytest.mark.parametrize("path", ["/text", "/pieces", "/broken"])
def test_head_says_the_same_without_the_body(path: str) -> None:
    reply = parse(ask(f"HEAD {path} HTTP/1.1\r\nHost: me\r\n\r\n".encode()))
    assert (reply.status, reply.body) == (200, b"")
    assert ("Content-Length" in reply.fields) == (path == "/text")


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /nowhere HTTP/1.1", 404),
        ("GET /text/ HTTP/1.1", 404),
        ("POST /text HTTP/1.1", 405),
        ("get /text HTTP/1.1", 405),
        ("GET /text HTTP/2.0", 505),
        ("GET /text", 400),
        ("GET  /text HTTP/1.1", 400),
        ("\x16\x03\x01 hello", 400),
        ("", 400),
    ],
)
def test_refusals(request_line: str, status: int) -> None:
    reply = parse(ask(request_line.encode() + b"\r\n\r\n"))
    assert reply.status == status
    assert int(reply.fields["Content-Length"]) == len(reply.body) > 0
    assert reply.fields.get("Allow") == ("GET, HEAD" if status == 405 else None)


def test_an_unread_body_does_not_cost_the_peer_its_answer() -> None:
    body = b"x" * 60_000
    request = b"POST /text HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert parse(ask(request + body)).status == 405


def test_a_head_that_does_not_end_is_refused() -> None:
    request = b"GET /text HTTP/1.1\r\nX: " + b"x" * 9_000
    assert parse(ask(request)).status == 431


@pytest.mark.parametrize("request_bytes", [b"", b"GET /text HT"])
def test_a_peer_that_leaves_early_is_let_go(request_bytes: bytes) -> None:
    assert ask(request_bytes, ends=True) == b""


def test_a_page_that_breaks_is_seen_to_be_incomplete(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> bytes:
        async with HttpEndpoint([LOOPBACK], ROUTES, LISTEN) as endpoint:
            return await exchange(endpoint.ports[0], b"GET /broken HTTP/1.1\r\n\r\n")

    assert not asyncio.run(run()).endswith(b"0\r\n\r\n")
    assert "no second half" in caplog.text


def test_a_silent_peer_is_cut_off() -> None:
    async def run() -> bytes:
        limits = HttpLimits(head_timeout_s=0.01)
        async with HttpEndpoint([LOOPBACK], ROUTES, LISTEN, limits) as endpoint:
            return await exchange(endpoint.ports[0], b"GET /te")

    assert asyncio.run(run()) == b""


def test_a_peer_that_takes_too_long_is_cut_off() -> None:
    async def run() -> bytes:
        reads = asyncio.Event()

        def endless() -> HttpAnswer:
            return HttpAnswer(HTTPStatus.OK, "text/plain", pieces())

        def pieces() -> Iterator[str]:
            try:
                while True:
                    yield "x" * 100_000
            finally:
                reads.set()

        limits = HttpLimits(answer_timeout_s=0.05)
        async with HttpEndpoint([LOOPBACK], {"/endless": endless}, LISTEN, limits) as endpoint:
            reader, writer = await asyncio.open_connection("127.0.0.1", endpoint.ports[0])
            writer.write(b"GET /endless HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(10):
                await reads.wait()
                received = await reader.read()
            writer.close()
            return received

    received = asyncio.run(run())
    assert received.startswith(b"HTTP/1.1 200")
    assert not received.endswith(b"0\r\n\r\n")


def test_connections_are_limited_and_free_again_afterwards() -> None:
    async def run() -> None:
        limits = HttpLimits(max_connections=1)
        async with HttpEndpoint([LOOPBACK], ROUTES, LISTEN, limits) as endpoint:
            port = endpoint.ports[0]
            _, first = await asyncio.open_connection("127.0.0.1", port)
            assert await exchange(port, b"") == b""
            first.close()
            await first.wait_closed()
            answer = b""
            async with asyncio.timeout(10):
                while not answer:
                    answer = await exchange(port, b"GET /text HTTP/1.1\r\n\r\n")
            assert parse(answer).status == 200

    asyncio.run(run())


def test_others_get_their_turn_between_two_pieces() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    seen = []

    def long_page() -> HttpAnswer:
        def body() -> Iterator[str]:
            for _ in range(5):
                seen.append(turns)
                yield "piece"

        return HttpAnswer(HTTPStatus.OK, "text/plain", body())

    async def run() -> None:
        async with HttpEndpoint([LOOPBACK], {"/": long_page}, LISTEN) as endpoint:
            counting = asyncio.create_task(count_turns())
            await exchange(endpoint.ports[0], b"GET / HTTP/1.1\r\n\r\n")
            counting.cancel()

    asyncio.run(run())
    assert len(set(seen)) == 5


def test_several_listeners_and_a_port_that_is_taken() -> None:
    async def run() -> None:
        endpoint = HttpEndpoint([LOOPBACK, LOOPBACK], ROUTES, LISTEN)
        ports = await endpoint.start()
        assert len(set(ports)) == 2
        for port in ports:
            assert parse(await exchange(port, b"GET /text HTTP/1.1\r\n\r\n")).status == 200
        other = HttpEndpoint([LOOPBACK, LOOPBACK._replace(port=ports[0])], ROUTES, LISTEN)
        with pytest.raises(OSError, match="in use"):
            await other.start()
        assert other.ports == ()
        await endpoint.stop()
        with pytest.raises(ConnectionRefusedError):
            await exchange(ports[0], b"")

    asyncio.run(run())


def test_stopping_cuts_off_whoever_is_connected() -> None:
    async def run() -> None:
        endpoint = HttpEndpoint([LOOPBACK], ROUTES, LISTEN)
        [port] = await endpoint.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /te")
        await asyncio.sleep(0)
        await endpoint.stop()
        async with asyncio.timeout(10):
            assert await reader.read() == b""
        writer.close()

    asyncio.run(run())


# ---- the broker's pages


def test_metrics_of_a_broker() -> None:
    world = World()
    reply = get("/metrics", http_pages(world.sources, lambda: START_MS))
    assert reply.status == 200
    assert reply.fields["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    page = Page(b"".join(unchunked(reply.body)).decode())
    assert page.value("kafka_server_replicamanager_leadercount") == 2


@pytest.mark.parametrize(
    ("state", "status", "text"),
    [
        (BrokerState.STARTING, 503, "starting"),
        (BrokerState.RUNNING, 200, "serving"),
        (BrokerState.PENDING_CONTROLLED_SHUTDOWN, 503, "pending_controlled_shutdown"),
        (BrokerState.SHUTTING_DOWN, 503, "shutting_down"),
    ],
)
def test_health_of_a_broker(state: BrokerState, status: int, text: str) -> None:
    world = World()
    world.sources.lifecycle.state = state
    reply = get("/healthz", http_pages(world.sources, lambda: START_MS))
    assert reply.status == status
    assert reply.fields["Content-Type"] == "application/json"
    assert json.loads(reply.body) == {"status": text, "broker_id": 1, "reasons": []}


def test_a_shard_that_cannot_be_loaded_is_told_while_the_broker_serves() -> None:
    world = World()
    world.sources.lifecycle.state = BrokerState.RUNNING
    world.faults.append("__consumer_offsets-3 cannot be loaded: offset 7 is damaged")
    reply = get("/healthz", http_pages(world.sources, lambda: START_MS))
    assert reply.status == 200
    (reason,) = json.loads(reply.body)["reasons"]
    assert reason == "__consumer_offsets-3 cannot be loaded: offset 7 is damaged"


def test_health_names_dynamic_configs_that_are_not_in_force() -> None:
    world = World()
    world.sources.lifecycle.state = BrokerState.RUNNING
    world.sources.live_settings.apply_dynamic(default={}, broker={"max.connections.per.ip": "0"})
    reply = get("/healthz", http_pages(world.sources, lambda: START_MS))
    assert reply.status == 200
    (reason,) = json.loads(reply.body)["reasons"]
    assert reason.startswith("max.connections.per.ip=0 (this broker's) is not in force: ")
    page = Page("".join(world.page.pieces(START_MS)))
    assert page.value("headrace_rejected_settings") == 1


def test_a_broker_serves_until_its_last_log_directory_fails() -> None:
    lifecycle = Lifecycle()
    lifecycle.state = BrokerState.RUNNING
    log_dirs = LogDirs(
        MemoryDisk(), ["/one", "/two"], config_for=lambda _: LogConfig(), new_id=lambda: TOPIC_ID
    )
    log_dirs.open(START_MS)
    log_dirs.take_offline("/one", "it burnt")
    health = check_health(lifecycle, log_dirs)
    assert health.is_serving
    assert health.reasons == ("log directory /one is offline: it burnt",)
    log_dirs.take_offline("/two", "so did this")
    health = check_health(lifecycle, log_dirs)
    assert not health.is_serving
    assert health.status == "no_log_directory"
    assert len(health.reasons) == 2
