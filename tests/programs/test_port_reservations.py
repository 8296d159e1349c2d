"""Reserved ports: nobody else gets them, and the server that they are for can listen there."""

import socket
from pathlib import Path

import pytest

from headrace.cli.local.port_reservations import HOST, PortReservations, is_free


def listening(port: int) -> socket.socket:
    return socket.create_server((HOST, port))  # with SO_REUSEADDR, as every server has it


def test_a_free_port_is_kept_for_the_server_that_it_is_for() -> None:
    with PortReservations() as ports:
        port = ports.free()
        with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
            stranger.bind((HOST, port))
        with listening(port):
            assert not is_free(port)


def test_free_ports_are_all_different() -> None:
    with PortReservations() as ports, PortReservations() as others:
        found = [each.free() for each in (ports, others) * 50]
        assert len(set(found)) == 100


def test_a_port_is_reserved_once(tmp_path: Path) -> None:
    with PortReservations() as unused:
        port = unused.free()
    with PortReservations(tmp_path) as second:
        with PortReservations(tmp_path) as first:
            assert first.take(port)
            assert not second.take(port)
            assert second.take_or_free(port) != port
            with listening(port):  # the reservation itself is in nobody's way
                pass
        assert second.take(port)


def test_a_port_on_which_somebody_listens_is_taken(tmp_path: Path) -> None:
    with PortReservations() as unused:
        port = unused.free()
    with PortReservations(tmp_path) as ports, PortReservations(tmp_path) as others:
        with listening(port):
            assert not ports.take(port)
        assert others.take(port), "a reservation that failed holds nothing"


def test_connections_that_have_not_quite_ended_take_no_port(tmp_path: Path) -> None:
    with PortReservations() as unused:
        port = unused.free()
    with (
        listening(port) as server,
        socket.create_connection((HOST, port)) as client,
        server.accept()[0] as accepted,
    ):
        accepted.close()  # the side that ends first waits a minute in TIME_WAIT
        assert client.recv(1) == b""
    with PortReservations(tmp_path) as ports:
        assert ports.take(port)


def test_without_a_place_for_lock_files_only_listeners_are_seen(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with PortReservations() as unused:
        port = unused.free()
    with PortReservations(file) as ports:
        assert ports.take(port)
        with listening(port):
            assert not ports.take(port)
