"""How much is remembered of requests that may come again, whoever sends them. That it is right: tests/property."""

import tracemalloc

from headrace.broker.net.connection import Connection
from tests.property.produce_world import Asked, World
from tests.unit.broker.apis.one_broker import connection_to

MOST_BYTES = 4 * 1024 * 1024


def frame_of(client_id: str, value_bytes: int, topic: str = "orders") -> bytearray:
    """A request that is understood and then refused: its batch has a wrong checksum."""
    return Asked(
        version=9,
        acks=1,
        client_id=client_id,
        targets=((topic, 0),),
        values=(bytes(value_bytes),),
        codec=0,
        producer=(-1, -1),
        fault="checksum",
    ).frame(correlation_id=7)


def is_recognised(connection: Connection, frame: bytearray) -> bool:
    known = connection.known_requests
    return known is not None and known.recognise([frame]) is not None


def test_many_clients_with_requests_of_many_lengths_cost_little() -> None:
    world = World()
    connections = []
    tracemalloc.start()
    for client in range(100):
        connection = connection_to()
        connections.append(connection)
        world.ask(connection, frame_of(f"client-{client}", 100))
        for value_bytes in range(1, 400):
            assert is_recognised(connection, frame_of(f"client-{client}", value_bytes))
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used_bytes < MOST_BYTES


def test_connections_share_what_they_have_in_common() -> None:
    world = World()
    first, second = connection_to(), connection_to()
    tracemalloc.start()
    world.ask(first, frame_of("client", 100))
    before, _ = tracemalloc.get_traced_memory()
    world.ask(second, frame_of("client", 100))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 1000
    assert is_recognised(second, frame_of("client", 200))


def test_what_one_connection_has_sent_is_not_known_of_another() -> None:
    """Another connection may have another principal: its request has to pass the steps first."""
    world = World()
    first, second = connection_to(), connection_to()
    world.ask(first, frame_of("client", 100))
    world.ask(second, frame_of("client", 100, "payments-and-more"))
    assert is_recognised(first, frame_of("client", 100))
    assert not is_recognised(second, frame_of("client", 100))


def test_another_client_id_on_the_same_connection_starts_anew() -> None:
    world, connection = World(), connection_to()
    world.ask(connection, frame_of("client", 100))
    world.ask(connection, frame_of("beings", 100))
    assert is_recognised(connection, frame_of("beings", 100))
    assert not is_recognised(connection, frame_of("client", 100)), "steps see the context of both"


def test_a_very_long_client_id_is_not_remembered() -> None:
    world, connection = World(), connection_to()
    world.ask(connection, frame_of("c" * 30_000, 100))
    assert connection.known_requests is None
    world.ask(connection, frame_of("c" * 400, 100))
    assert is_recognised(connection, frame_of("c" * 400, 100))


def test_a_connection_to_very_many_partitions_forgets_some() -> None:
    world, connection = World(), connection_to()
    for number in range(1500):
        frame = frame_of("client", 100)
        # Different time-outs make different forms.
        at = frame.index((60_000).to_bytes(4))
        frame[at : at + 4] = (60_000 + number).to_bytes(4)
        world.ask(connection, frame)
    assert is_recognised(connection, frame)
    assert not is_recognised(connection, frame_of("client", 100))


def test_lengths_that_were_forgotten_are_found_out_again() -> None:
    world, connection = World(), connection_to()
    world.ask(connection, frame_of("client", 100))
    for value_bytes in range(1, 9000):
        assert is_recognised(connection, frame_of("client", value_bytes))
    for value_bytes in (100, 200):
        answer = world.ask(connection, good(value_bytes))
        assert isinstance(answer, bytes)


def good(value_bytes: int) -> bytearray:
    frame = frame_of("client", value_bytes)
    frame[-4] ^= 1  # the last byte of the batch, before three sections without tags
    return frame
