"""Frames out of a stream, in any cut, for memory that was paid with bytes."""

from random import Random

import pytest

from headrace.broker.net.buffer_pool import BufferPool
from headrace.broker.net.frame_buffer import FrameBuffer
from headrace.errors import MalformedMessage

LIMIT = 1_000_000


class Stream:
    """Feeds bytes as a transport would."""

    def __init__(self, area_bytes: int = 4096) -> None:
        self.buffer_pool = BufferPool()
        self.buffer = FrameBuffer(LIMIT, self.buffer_pool)
        self.shared = memoryview(bytearray(area_bytes))

    def feed_whole(self, data: bytes) -> memoryview:
        """The rest of one large frame, as it is handed out."""
        while True:
            area = self.buffer.area(self.shared)
            count = min(len(area), len(data))
            area[:count] = data[:count]
            data = data[count:]
            frames = self.buffer.received(self.shared, count)
            if frames:
                assert isinstance(frames[0], memoryview)
                return frames[0]

    def feed(self, data: bytes, random: Random | None = None) -> list[bytes]:
        frames: list[bytes] = []
        while data:
            area = self.buffer.area(self.shared)
            count = min(len(area), len(data))
            if random is not None:
                count = random.randint(1, count)
            area[:count] = data[:count]
            del area  # as a transport lets go of it: memory that is looked at cannot grow
            data = data[count:]
            frames += map(bytes, self.buffer.received(self.shared, count))
        return frames


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4) + payload


@pytest.mark.parametrize("seed", range(5))
def test_frames_come_out_whole_however_the_stream_is_cut(seed: int) -> None:
    random = Random(seed)
    sizes = (1, 3, 100, 4092, 4093, 20_000, 60_000)
    payloads = [random.randbytes(random.choice(sizes)) for _ in range(30)]
    assert Stream().feed(b"".join(map(framed, payloads)), random) == payloads


@pytest.mark.parametrize("length", [0, -1, LIMIT + 1, 2**31 - 1])
def test_a_length_that_cannot_be_is_refused_at_once(length: int) -> None:
    with pytest.raises(MalformedMessage, match=str(length)):
        Stream().feed(length.to_bytes(4, signed=True))


def test_a_claimed_length_costs_little_before_its_bytes_arrive() -> None:
    stream = Stream()
    stream.feed(LIMIT.to_bytes(4) + b"x")
    assert stream.buffer.held_bytes <= 16 * 1024
    stream.feed(bytes(100_000))
    assert stream.buffer.held_bytes <= 300_000


def test_a_whole_frame_holds_nothing_any_more() -> None:
    stream = Stream()
    assert stream.feed(framed(bytes(50_000))) == [bytes(50_000)]
    assert stream.buffer.held_bytes == 0


def test_a_large_frame_lies_in_the_memory_of_the_one_before() -> None:
    stream = Stream()
    first, second = bytes(range(250)) * 800, b"x" * 190_000
    area = stream.buffer.area(stream.shared)
    assert area is stream.shared
    frame = stream.feed_whole(framed(first))
    assert frame == first
    memory = frame.obj
    stream.buffer.done(frame)
    del frame
    stream.feed(framed(second)[:5])
    assert stream.buffer.held_bytes == len(second), "all of it at once: it is there anyway"
    frame = stream.feed_whole(framed(second)[5:])
    assert frame == second
    assert frame.obj is memory
