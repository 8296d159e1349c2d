"""The load generator takes answers apart as HTTP says, and counts what is no answer."""

import asyncio
from collections.abc import Callable

import pytest

from bench.http.load import Connection, end_of_answer, request_bytes

GOOD = b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"ok"'
BAD = b'HTTP/1.1 500 Oh\r\ncontent-length: 4\r\n\r\n"no"'
CHUNKED = b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n"ok"\r\n0\r\n\r\n'


@pytest.mark.parametrize("answer", [GOOD, CHUNKED])
def test_an_answer_ends_where_its_last_byte_is(answer: bytes) -> None:
    assert [end_of_answer(answer[:end]) for end in range(len(answer))] == [-1] * len(answer)
    assert end_of_answer(answer) == len(answer)
    assert end_of_answer(answer + b"HTTP/1.1 ") == len(answer)


def test_an_answer_whose_end_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a length nor chunks"):
        end_of_answer(b"HTTP/1.1 200 OK\r\n\r\n")


class SentBytes(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.is_closed = True


def connected(during: Callable[[Connection, SentBytes], None]) -> Connection:
    async def run() -> Connection:
        connection, transport = Connection(b"ask", b'"ok"'), SentBytes()
        connection.connection_made(transport)
        during(connection, transport)
        return connection

    return asyncio.run(run())


def test_the_next_request_waits_for_the_whole_answer() -> None:
    def during(connection: Connection, transport: SentBytes) -> None:
        connection.data_received(GOOD[:10])
        assert transport.sent == [b"ask"]
        connection.data_received(GOOD[10:])
        assert transport.sent == [b"ask"] * 2

    connection = connected(during)
    assert (len(connection.seconds), connection.failures) == (1, 0)


def test_wrong_answers_and_lost_connections_are_failures() -> None:
    def during(connection: Connection, _: SentBytes) -> None:
        connection.data_received(BAD)
        connection.data_received(CHUNKED)
        connection.connection_lost(None)

    connection = connected(during)
    assert (len(connection.seconds), connection.failures) == (2, 2)


def test_a_connection_that_is_to_stop_is_closed_behind_its_answer() -> None:
    def during(connection: Connection, transport: SentBytes) -> None:
        connection.is_stopping = True
        connection.data_received(GOOD[:-1])
        assert [transport.is_closed, *transport.sent] == [False, b"ask"]
        connection.data_received(GOOD[-1:])
        assert transport.is_closed
        assert transport.sent == [b"ask"]
        connection.connection_lost(None)

    assert connected(during).failures == 0


def test_a_request_says_how_long_it_is() -> None:
    assert request_bytes("GET", "/x").endswith(b"Accept: */*\r\n\r\n")
    assert request_bytes("POST", "/x", b"{}").endswith(b"Content-Length: 2\r\n\r\n{}")
