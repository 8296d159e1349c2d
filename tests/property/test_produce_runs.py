"""Requests that arrive together are answered, and leave behind, what they would one by one.

Two worlds get the same frames: in one a connection reads several at a time, so that batches may be written together; in
the other the connection is given one after the other, and forgets what they have in common.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from headrace.broker.net.frame_buffer import Frame
from headrace.broker.net.memory_budget import MemoryBudget
from headrace.broker.requests.dispatch import Dispatcher
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.requests.request_steps import RequestSteps
from headrace.log.log_config import LogConfig
from tests.property.produce_world import FOLLOWED, Asked, World
from tests.support.broker_link import Link
from tests.unit.broker.apis.one_broker import NOW_MS, Listener

PRODUCER = 9


class Sent(NamedTuple):
    """One request of a producer: what is new in it, and how far its sequence is off."""

    values: tuple[bytes, ...]
    fault: str
    time_ms: int
    jump: int


class Burst(NamedTuple):
    """Requests that come at once."""

    like: Asked
    sent: list[Sent]


class RoomyListener(Listener):
    """For connections that read all of a burst at once."""

    def __init__(self, dispatch: Dispatcher) -> None:
        super().__init__("PLAINTEXT")
        self.receive_area = memoryview(bytearray(1 << 16))
        self.budget = MemoryBudget(1 << 30)
        self.dispatch = dispatch


asks = st.builds(
    Asked,
    version=st.sampled_from([9, 9, 13, 7]),
    acks=st.sampled_from([-1, 1]),
    client_id=st.just("a"),
    targets=st.sampled_from([(("orders", 0),), (("orders", 0),), ((FOLLOWED, 1),)]),
    values=st.just((b"first",)),
    codec=st.sampled_from([0, 0, 3]),
    producer=st.sampled_from([(-1, -1), (PRODUCER, 0)]),
    fault=st.just(""),
    time_ms=st.just(NOW_MS),
    producer_epoch=st.just(0),
)
sent = st.builds(
    Sent,
    values=st.lists(st.binary(max_size=60), min_size=1, max_size=2).map(tuple),
    fault=st.sampled_from([""] * 9 + ["checksum", "cut", "end"]),
    time_ms=st.sampled_from([NOW_MS] * 4 + [NOW_MS + 5, NOW_MS - 5_000, NOW_MS + 10**9, -1]),
    jump=st.sampled_from([0] * 9 + [-1, 1]),
)
bursts = st.lists(
    st.builds(Burst, asks, st.lists(sent, min_size=1, max_size=6)), min_size=1, max_size=5
)
configs = st.sampled_from(
    [
        LogConfig(),
        LogConfig(index_interval_bytes=1),
        LogConfig(segment_bytes=400, index_interval_bytes=1),
        LogConfig(segment_index_bytes=48, index_interval_bytes=1),
        LogConfig(segment_ms=3_000, index_interval_bytes=100),
        LogConfig(flush_messages=3),
        LogConfig(cleanup_compact=True),
        LogConfig(log_append_time=True),
        LogConfig(max_message_bytes=110),
    ]
)


@given(bursts, configs, st.sampled_from([1 << 20, 1 << 20, 700]))
def test_together_as_one_by_one(story: list[Burst], config: LogConfig, room_bytes: int) -> None:
    asyncio.run(play(story, config, room_bytes))


async def play(story: list[Burst], config: LogConfig, room_bytes: int) -> None:
    passed, passed_alone = list[int](), list[int]()
    together = World(room_bytes, config, noting(passed))
    alone = World(room_bytes, config, noting(passed_alone))
    link, alone_link = (Link(RoomyListener(world.dispatch)) for world in (together, alone))
    next_sequence: Counter[tuple[str, int]] = Counter()
    answers: list[bytes | str | asyncio.Future[bytes]] = []
    for burst in story:
        frames = [
            request.frame(len(answers) + number)
            for number, request in enumerate(requests_of(burst, next_sequence))
        ]
        for frame in frames:
            alone_link.connection.known_requests = None
            answers.append(alone.ask(alone_link.connection, bytearray(frame)))
            if answers[-1] == "closed":
                break
        link.frames(*map(bytes, frames))
        if answers[-1] == "closed":
            break
    together.settle()
    alone.settle()
    expected = b""
    for answer in answers:
        known = await answer if isinstance(answer, asyncio.Future) else answer
        expected += known if isinstance(known, bytes) else b""
    for _ in range(3):
        await asyncio.sleep(0)  # for answers that waited
    is_closed = "closed" in answers
    assert link.transport.end == ("closed" if is_closed else "open")
    assert link.transport.sent == expected or (
        is_closed and expected.startswith(link.transport.sent)
    )
    assert together.remains() == alone.remains()
    decoded = len(answers) - is_closed  # a frame that cannot be decoded closes
    assert passed == passed_alone == list(range(decoded)), "each request passes the steps once"


def noting(correlation_ids: list[int]) -> RequestSteps:
    """A step that notes which requests pass it."""

    def note(context: RequestContext, request: object, frames: Sequence[Frame]) -> None:
        correlation_ids.extend(int.from_bytes(frame[4:8]) for frame in frames)

    return RequestSteps(quota=note)


def requests_of(burst: Burst, next_sequence: Counter[tuple[str, int]]) -> list[Asked]:
    requests = []
    (place,) = burst.like.targets
    for one in burst.sent:
        sequence = max(0, next_sequence[place] + one.jump)
        producer = (PRODUCER, sequence) if burst.like.producer[0] >= 0 else (-1, -1)
        requests.append(
            burst.like._replace(
                values=one.values, fault=one.fault, time_ms=one.time_ms, producer=producer
            )
        )
        if producer[0] >= 0 and not one.fault and not one.jump:
            next_sequence[place] += len(one.values)
    return requests


def test_a_burst_is_written_together() -> None:
    """Or all of the above would compare one by one with itself."""

    async def story() -> None:
        world = World()
        link = Link(RoomyListener(world.dispatch))
        asked = Asked(9, 1, "a", (("orders", 0),), (b"value",), 0, (PRODUCER, 0), "")
        link.frames(bytes(asked.frame(0)))
        frames = [asked._replace(producer=(PRODUCER, at)).frame(at) for at in range(1, 6)]
        assert len(world.dispatch(link.connection, frames)) == len(frames)

    asyncio.run(story())
