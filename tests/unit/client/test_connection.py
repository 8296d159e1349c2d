"""The blocking connection against a peer on the loopback that has its answers ready before it is asked."""

import socket
from collections.abc import Iterator

import pytest

from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.errors import MalformedMessage
from headrace.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.unit.client.answers import answer_frame, framed


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        Connection("127.0.0.1", server.getsockname()[1], timeout_s=5) as connection,
        server.accept()[0] as peer,
    ):
        yield connection, peer


Pair = tuple[Connection, socket.socket]


def test_a_request_gets_its_answer(pair: Pair) -> None:
    connection, peer = pair
    peer.sendall(answer_frame(0, HeartbeatResponse(error_code=27), 4))
    assert connection.send(HeartbeatRequest(group_id="g"), 4).error_code == 27
    assert peer.recv(1000)[4:8] == bytes.fromhex("000c0004")


def test_versions_are_negotiated_once(pair: Pair) -> None:
    connection, peer = pair
    offer = ApiVersionsResponse(api_keys=[ApiVersion(api_key=12, min_version=0, max_version=2)])
    peer.sendall(answer_frame(0, offer, 4))
    assert connection.negotiate() == {12: (0, 2)}
    peer.sendall(answer_frame(1, HeartbeatResponse(), 2))
    assert connection.send(HeartbeatRequest()) == HeartbeatResponse()


def test_a_peer_that_closes_is_told(pair: Pair) -> None:
    connection, peer = pair
    peer.shutdown(socket.SHUT_WR)
    with pytest.raises(Disconnected, match="closed"):
        connection.send(HeartbeatRequest(), 4)


def test_nonsense_is_told_and_ends_the_connection(pair: Pair) -> None:
    connection, peer = pair
    peer.sendall(b"HTTP/1.1 400 Bad Request")
    with pytest.raises(MalformedMessage):
        connection.send(HeartbeatRequest(), 4)
    with pytest.raises(Disconnected):
        connection.send(HeartbeatRequest(), 4)


def test_raw_frames_go_both_ways(pair: Pair) -> None:
    connection, peer = pair
    peer.sendall(framed(b"one") + framed(b"two"))
    connection.send_frame(b"\1\2\3")
    assert peer.recv(100) == b"\0\0\0\3\1\2\3"
    assert bytes(connection.receive_frame()) == b"one"
    assert bytes(connection.receive_frame()) == b"two"


def test_a_port_where_nobody_listens_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Disconnected, match=str(port)):
        Connection("127.0.0.1", port, timeout_s=5)
