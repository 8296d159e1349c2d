"""Connections whose request does not come are closed, at the proxy and at the registry; others are not."""

import socket
from collections.abc import Iterator

import pytest

from tests.support.http_program_process import HttpProgramProcess
from tests.support.registry_process import RegistryProcess
from tests.support.rest_process import RestProcess

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SHORT = {"headrace.request.headers.timeout.ms": "1000"}


@pytest.fixture(scope="module", params=["proxy", "registry"])
def program(
    request: pytest.FixtureRequest, brokers: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HttpProgramProcess]:
    directory = tmp_path_factory.mktemp("deadline")
    found: HttpProgramProcess
    if request.param == "proxy":
        found = RestProcess(directory, brokers, properties=SHORT)
    else:
        names = {"kafkastore.topic": "_deadline", "schema.registry.group.id": "deadline"}
        found = RegistryProcess(directory, brokers, properties={**SHORT, **names})
    with found:
        yield found


def connect(program: HttpProgramProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", program.port), timeout=30)


def read_answer(connection: socket.socket) -> None:
    data = b""
    while b"status" not in data:
        received = connection.recv(65536)
        assert received, data
        data += received
    assert data.startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize("start", [b"", b"G", REQUEST[:-2], b"POST /x HTTP/1.1\r\nA: b\r\n"])
def test_without_the_headers_of_a_request_it_is_closed(
    program: HttpProgramProcess, start: bytes
) -> None:
    with connect(program) as connection:
        connection.sendall(start)
        assert connection.recv(1) == b""


def test_without_the_headers_of_the_next_request_it_is_closed(program: HttpProgramProcess) -> None:
    with connect(program) as connection:
        connection.sendall(REQUEST)
        read_answer(connection)
        connection.sendall(REQUEST[:10])
        assert connection.recv(1) == b""


def test_bytes_that_come_one_by_one_do_not_move_the_deadline(program: HttpProgramProcess) -> None:
    with connect(program) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        connection.settimeout(0.1)
        for _ in range(300):
            try:
                assert connection.recv(1) == b""
            except TimeoutError:
                connection.sendall(b"x")
                continue
            except ConnectionError:
                pass
            return
        raise AssertionError("still open")


def test_a_body_may_take_longer(program: HttpProgramProcess) -> None:
    with connect(program) as slow, connect(program) as other:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        read_answer(slow)
        slow.sendall(
            b"POST /consumers/deadline HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
            b"Content-Type: application/vnd.kafka.v2+json\r\nConnection: close\r\n\r\n{"
        )
        assert other.recv(1) == b""  # the time is over
        slow.sendall(b"}")
        assert slow.recv(65536).startswith(b"HTTP/1.1 ")
