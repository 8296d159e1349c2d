"""Frames come out whole and in order, however the stream is cut."""

import itertools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import MalformedMessage
from headrace.wire.framing import FrameReader, length_prefix


def framed(payloads: Iterable[bytes]) -> bytes:
    return b"".join(length_prefix([payload]) + payload for payload in payloads)


@given(st.lists(st.binary(max_size=40), max_size=8), st.lists(st.integers(0, 400), max_size=12))
def test_any_cut_gives_the_same_frames(payloads: list[bytes], cuts: list[int]) -> None:
    stream = framed(payloads)
    reader = FrameReader()
    points = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    frames: list[memoryview] = []
    for start, stop in itertools.pairwise(points):
        frames += reader.feed(stream[start:stop])
    assert frames == payloads
    assert reader.buffered_bytes == 0


def test_byte_by_byte() -> None:
    reader = FrameReader()
    frames = [
        frame for byte in framed([b"one", b"", b"two"]) for frame in reader.feed(bytes([byte]))
    ]
    assert frames == [b"one", b"", b"two"]


def test_a_frame_that_came_in_one_piece_is_not_copied() -> None:
    data = framed([b"abc", b"def"])
    assert [frame.obj is data for frame in FrameReader().feed(data)] == [True, True]


def test_the_rest_of_a_frame_is_counted() -> None:
    reader = FrameReader()
    assert reader.feed(framed([b"abc"])[:5]) == []
    assert reader.buffered_bytes == 5


@pytest.mark.parametrize("length", [-1, 101, 2**31 - 1])
def test_a_bad_length_is_refused(length: int) -> None:
    reader = FrameReader(max_frame_bytes=100)
    with pytest.raises(MalformedMessage, match="at most 100"):
        reader.feed(length.to_bytes(4, signed=True))


def test_a_bad_length_that_came_in_pieces_is_refused() -> None:
    reader = FrameReader(max_frame_bytes=100)
    assert reader.feed(b"\x7f") == []
    with pytest.raises(MalformedMessage):
        reader.feed(b"\xff\xff\xff")
