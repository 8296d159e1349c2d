"""The short way of a Produce answers what the long way answers, byte for byte, and leaves the same log behind.

Two worlds get the same requests over one connection each: in one the next may be known from the last, the connection of the
other forgets the last one. Leaders resign and come back in between.
"""

import asyncio
from collections.abc import Sequence
from struct import pack

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from headrace.broker.net.connection import Connection
from headrace.broker.net.frame_buffer import Frame
from tests.property.produce_world import FOLLOWED, TOPICS, Asked, World
from tests.unit.broker.apis.one_broker import NOW_MS, connection_to

targets = st.tuples(st.sampled_from([*TOPICS, "nowhere"]), st.integers(0, 2))
usual = st.tuples(st.sampled_from(["orders", FOLLOWED]), st.integers(0, 1))
asks = st.builds(
    Asked,
    version=st.sampled_from([7, 9, 9, 11, 13]),
    acks=st.sampled_from([-1, -1, 1, 1, 0, 5]),
    client_id=st.sampled_from(["a", "another", None]),
    targets=st.one_of(usual.map(lambda one: (one,)), st.lists(targets, max_size=2).map(tuple)),
    values=st.lists(st.binary(max_size=300), min_size=1, max_size=2).map(tuple),
    codec=st.sampled_from([0, 0, 3, 4]),
    producer=st.tuples(st.sampled_from([-1, -1, 9]), st.integers(0, 3)),
    fault=st.sampled_from(["", "", "", "", "checksum", "magic", "cut", "short", "tags", "end"]),
    time_ms=st.just(NOW_MS),
    producer_epoch=st.sampled_from([0, 0, 0, 1]),
)
# Producers repeat themselves: each request comes a few times, with other records.
stories = st.lists(st.tuples(asks, st.lists(asks, max_size=3)), max_size=8)
role_changes = st.dictionaries(st.integers(0, 20), st.sampled_from(["leader", "follower"]))


@given(stories, st.sampled_from([1 << 20, 1 << 20, 500]), role_changes)
def test_both_ways_lead_to_the_same(
    story: list[tuple[Asked, list[Asked]]], room_bytes: int, replica_hosting: dict[int, str]
) -> None:
    requests = []
    for first, others in story:
        requests.append(first)
        requests += [
            first._replace(values=other.values, fault=other.fault, producer=other.producer)
            for other in others
        ]
    asyncio.run(play(requests, room_bytes, replica_hosting))


def lying(frame: bytearray, number: int) -> Frame:
    """Some frames lie in memory that is larger, as large ones do."""
    return frame if number % 2 else memoryview(frame + b"something else")[: len(frame)]


async def play(requests: list[Asked], room_bytes: int, replica_hosting: dict[int, str]) -> None:
    short, long = World(room_bytes), World(room_bytes)
    connection, forgetful = connection_to(), connection_to()
    answers = []
    for number, asked in enumerate(requests):
        if number in replica_hosting:
            short.change_role(is_leader=replica_hosting[number] == "leader")
            long.change_role(is_leader=replica_hosting[number] == "leader")
        if connection.known_requests is not None:
            event("a request that may be known")
        if connection.refused_batches:
            event("a request after a refused one")
        forgetful.known_requests = None
        answers.append(
            (
                short.ask(connection, lying(asked.frame(number), number)),
                long.ask(forgetful, asked.frame(number)),
            )
        )
    short.settle()
    long.settle()
    for number, (one, other) in enumerate(answers):
        assert isinstance(one, asyncio.Future) == isinstance(other, asyncio.Future)
        first = await one if isinstance(one, asyncio.Future) else one
        second = await other if isinstance(other, asyncio.Future) else other
        assert first == second, requests[number]
        assert not isinstance(first, bytes) or first[4:8] == pack(">i", number)
    assert short.remains() == long.remains()


@pytest.mark.parametrize("number", [2, 3])
def test_the_same_request_again_is_not_decoded(number: int) -> None:
    """Or all of the above would compare the long way with itself."""
    world = World()
    connection = connection_to()
    asked = Asked(9, 1, "a", (("orders", 1),), (b"value",), 0, (-1, -1), "")
    world.ask(connection, asked.frame(1))
    frame = lying(asked._replace(values=(b"x" * 200,)).frame(number), number)
    (answer,) = by_fast_path(connection, [frame])
    assert isinstance(answer, list)
    assert world.partitions.get("orders", 1).log.log_end_offset == 2  # type: ignore[union-attr] # it is hosted


def by_fast_path(connection: Connection, frames: Sequence[Frame]) -> Sequence[object]:
    known = connection.known_requests
    recognised = known.recognise(frames)
    assert recognised[0] == len(frames)
    answers: Sequence[object] = known.answer(recognised, frames)
    return answers


def test_nor_are_several_of_all_lengths() -> None:
    world = World()
    connection = connection_to()
    asked = Asked(9, 1, "a", (("orders", 1),), (b"value",), 0, (-1, -1), "")
    world.ask(connection, asked.frame(1))
    for size in (0, 1, 40, 60, 61, 62, 120, 127, 128, 16_000, 16_300, 16_384, 40_000):
        frames = [
            lying(asked._replace(values=(b"x" * size,)).frame(number), number)
            for number in range(4)
        ]
        answers = by_fast_path(connection, frames)
        assert [bytes(answer[0])[4:8] for answer in answers if isinstance(answer, list)] == [
            pack(">i", number) for number in range(4)
        ]
