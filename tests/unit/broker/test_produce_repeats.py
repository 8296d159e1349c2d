"""How much is remembered of requests that may come again, whoever sends them. That it is right: tests/property."""

import tracemalloc

from headrace.broker.refused_batches import RefusedBatches
from headrace.wire.codec import decode
from headrace.wire.headers import decode_request_header
from headrace.wire.messages.produce import ProduceRequest
from tests.property.produce_world import Asked, World

MOST_BYTES = 4 * 1024 * 1024


def frame_of(client_id: str, value_bytes: int) -> bytearray:
    """A request that is understood and then refused: its batch has a wrong checksum."""
    return Asked(
        version=9,
        acks=1,
        client_id=client_id,
        targets=(("orders", 0),),
        values=(bytes(value_bytes),),
        codec=0,
        producer=(-1, -1),
        fault="checksum",
    ).frame(correlation_id=7)


def learn(world: World, frame: bytearray) -> int:
    size = decode_request_header(frame).size
    request = decode(ProduceRequest, 9, frame[size:])
    return world.repeats.learn(frame, 9, request)


def test_many_clients_with_requests_of_many_lengths_cost_little() -> None:
    world = World()
    tracemalloc.start()
    for client in range(100):
        end = learn(world, frame_of(f"client-{client}", 100))
        assert end
        for value_bytes in range(1, 400):
            world.repeats.append(frame_of(f"client-{client}", value_bytes), end, RefusedBatches())
    used_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used_bytes < MOST_BYTES


def test_a_very_long_client_id_is_not_remembered() -> None:
    world = World()
    assert learn(world, frame_of("c" * 400, 100)) > 0
    assert learn(world, frame_of("c" * 30_000, 100)) == 0


def test_lengths_that_were_forgotten_are_found_out_again() -> None:
    world = World()
    end = learn(world, frame_of("client", 100))
    answers = {value_bytes: bytes(good(value_bytes)) for value_bytes in (100, 200)}
    for value_bytes in range(1, 9000):
        world.repeats.append(frame_of("client", value_bytes), end, RefusedBatches())
    for frame in answers.values():
        assert world.repeats.append(bytearray(frame), end, RefusedBatches()) is not None


def good(value_bytes: int) -> bytearray:
    frame = frame_of("client", value_bytes)
    frame[-4] ^= 1  # the last byte of the batch, before three sections without tags
    return frame
