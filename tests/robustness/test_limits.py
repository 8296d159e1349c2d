"""The limits that an operator sets hold, and cost only those who exceed them."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing

import pytest

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected, Exchange
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.wire.headers import decode_correlation_id
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.metadata import MetadataRequest
from tests.robustness.bystander import Bystander
from tests.robustness.conftest import StartBroker
from tests.robustness.fuzz_inputs import with_length
from tests.robustness.raw_peer import (
    can_connect,
    dial,
    is_closed,
    is_served,
    receive_frames,
)
from tests.robustness.wire_calls import (
    FETCH_VERSION,
    create_topic,
    fetch_request,
    produce,
    produce_result,
)
from tests.support.process_memory import MIB, MemoryWatch

LIMIT = 8
SOON_S = 20.0


def test_max_connections(start_broker: StartBroker) -> None:
    port = start_broker({"max.connections": str(LIMIT)}).port
    with ExitStack() as stack:
        peers = [stack.enter_context(closing(dial(port))) for _ in range(LIMIT)]
        assert all(map(is_served, peers))
        assert not can_connect(port)
        assert all(map(is_served, peers))
        peers[0].close()
        wait_until(lambda: can_connect(port))


def test_max_connection_creation_rate(start_broker: StartBroker) -> None:
    """Two a second: whoever comes sooner is served later, and nobody is turned away."""
    port = start_broker({"max.connection.creation.rate": "2"}).port
    began = time.monotonic()
    with ExitStack() as stack:
        peers = [stack.enter_context(closing(dial(port))) for _ in range(5)]
        served_after = []
        for peer in peers:
            assert is_served(peer)
            served_after.append(time.monotonic() - began)
    assert served_after[-1] >= 1.0, served_after


def test_socket_buffers() -> None:
    settings = {"socket.send.buffer.bytes": "70000", "socket.receive.buffer.bytes": "60000"}
    # Open until the sizes are read: the broker closes its end as soon as the peer closes its own.
    with (
        EmbeddedBroker(settings) as broker,
        closing(dial(int(broker.bootstrap_servers.rpartition(":")[2]))) as peer,
    ):
        assert is_served(peer)
        assert broker._broker is not None
        assert broker._broker.parts is not None
        (connection,) = broker._broker.parts.connections.open
        assert connection._transport is not None
        served = connection._transport.get_extra_info("socket")
        sizes = [
            served.getsockopt(socket.SOL_SOCKET, option)
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)
        ]
    assert sizes == [140_000, 120_000], "twice what is asked for, as Linux has it"


def test_max_connections_per_ip_with_overrides(start_broker: StartBroker) -> None:
    settings = {"max.connections.per.ip": "3", "max.connections.per.ip.overrides": "127.0.0.9:1"}
    port = start_broker(settings).port
    with ExitStack() as stack:
        for source, allowed in (("127.0.0.8", 3), ("127.0.0.9", 1)):
            peers = [
                stack.enter_context(closing(dial(port, source=source))) for _ in range(allowed)
            ]
            assert all(map(is_served, peers))
            assert not can_connect(port, source=source)
        assert can_connect(port, source="127.0.0.10")


def test_idle_connections_are_closed_and_others_are_not(start_broker: StartBroker) -> None:
    port = start_broker({"connections.max.idle.ms": "500"}).port
    with (
        closing(dial(port)) as silent,
        closing(dial(port)) as half_a_frame,
        Connection("127.0.0.1", port) as waiting,
        Bystander(port, "bystander") as bystander,
    ):
        assert is_served(silent)
        create_topic(waiting, "quiet")
        half_a_frame.sendall((1000).to_bytes(4) + b"half")
        # Longer than the limit, and more than once: a request that waits is no idle connection.
        for _ in range(2):
            began = time.monotonic()
            waiting.send(fetch_request("quiet", 0, max_wait_ms=2000), FETCH_VERSION)
            assert time.monotonic() - began > 1.9
        assert is_closed(silent)
        assert is_closed(half_a_frame)
    assert bystander.rounds > 0


@pytest.mark.parametrize("extra_bytes", [0, 1])
def test_socket_request_max_bytes(start_broker: StartBroker, extra_bytes: int) -> None:
    port = start_broker({"socket.request.max.bytes": "100000"}).port
    with closing(dial(port)) as peer, closing(dial(port)) as other:
        payload = bytes.fromhex("0012 0000 00000007 0000".replace(" ", ""))  # ApiVersions v0
        peer.sendall(with_length(payload + bytes(100_000 + extra_bytes - len(payload))))
        if extra_bytes:
            assert is_closed(peer)
        else:
            assert decode_correlation_id(receive_frames(peer, 1)[0]) == 7
        assert is_served(other)


def test_pipelined_requests_are_answered_in_order(start_broker: StartBroker) -> None:
    port = start_broker().port
    with Connection("127.0.0.1", port) as connection:
        create_topic(connection, "ordered")
    exchange = Exchange("pipeline")
    data = b""
    for number in range(300):
        match number % 3:
            case 0:
                wait_ms = 20 if number % 30 == 0 else 0
                data += b"".join(
                    exchange.ask(fetch_request("ordered", 0, max_wait_ms=wait_ms), FETCH_VERSION)
                )
            case 1:
                data += b"".join(exchange.ask(MetadataRequest(topics=None), 12))
            case _:
                data += b"".join(exchange.ask(ApiVersionsRequest(), 0))
    with closing(dial(port)) as peer:
        peer.sendall(data)
        answers = receive_frames(peer, 300)
    assert [decode_correlation_id(answer) for answer in answers] == list(range(300))


SMALL_BUDGET = {"queued.max.request.bytes": "1000000", "socket.request.max.bytes": "1000000"}


def test_more_requests_than_memory_wait_and_are_all_served(start_broker: StartBroker) -> None:
    clients, rounds = 12, 8
    broker = start_broker(SMALL_BUDGET)
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, "large", partitions=clients)
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with Connection("127.0.0.1", broker.port, timeout_s=60) as client:
                for turn in range(rounds):
                    assert produce(client, "large", [bytes(600_000)], partition=number) == turn
        except BaseException as failure:  # noqa: BLE001 (raised again below, in the test's own thread)
            failures.append(failure)

    with MemoryWatch(broker.pid) as memory:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures, failures
    assert memory.growth_bytes < 30 * MIB


def test_hoarders_of_half_requests_do_not_stop_the_others(start_broker: StartBroker) -> None:
    broker = start_broker(SMALL_BUDGET)
    with ExitStack() as stack, Bystander(broker.port, "bystander") as bystander:
        peers = [stack.enter_context(closing(dial(broker.port))) for _ in range(2)]
        for peer in peers:
            peer.sendall((900_000).to_bytes(4))
            peer.setblocking(False)
            try:
                peer.send(bytes(800_000))
            except BlockingIOError:
                pass
        rounds_before = bystander.rounds
        with Connection("127.0.0.1", broker.port, timeout_s=60) as client:
            create_topic(client, "large")
            for turn in range(3):
                assert produce(client, "large", [bytes(600_000)]) == turn
        wait_until(lambda: bystander.rounds > rounds_before)


def test_a_frame_too_large_for_the_client_is_told_by_closing(start_broker: StartBroker) -> None:
    port = start_broker(SMALL_BUDGET).port
    with Connection("127.0.0.1", port) as client:
        create_topic(client, "large")
        with pytest.raises(Disconnected):
            produce_result(client, "large", [bytes(1_000_001)])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
