"""A stream of JSON values, cut anywhere, gives the values that were written, each one whole."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.rest.json_stream import BrokenStream, JsonStream, ValueTooLong

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.text())
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)
    ),
)
GAPS = st.sampled_from([b" ", b"\n", b"\r\n", b"\t  "])
TEXTS = st.lists(
    st.tuples(
        st.builds(
            lambda value, ascii_only, indent: json.dumps(
                value, ensure_ascii=ascii_only, indent=indent
            ).encode("utf-8", "surrogatepass"),
            VALUES,
            st.booleans(),
            st.sampled_from([None, 2]),
        ),
        GAPS,
    ),
    max_size=5,
)


def split(stream: JsonStream, data: bytes, cuts: list[int]) -> list[bytes]:
    found: list[bytes] = []
    edges = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(edges):
        found += stream.feed(data[start:end])
    last = stream.end()
    return found + ([last] if last is not None else [])


@given(TEXTS, st.lists(st.integers(0, 200)))
def test_values_are_found_wherever_the_stream_is_cut(
    texts: list[tuple[bytes, bytes]], cuts: list[int]
) -> None:
    data = b"".join(text + gap for text, gap in texts)
    assert split(JsonStream(10**6), data, cuts) == [text for text, _ in texts]


@given(
    st.lists(st.dictionaries(st.text(), SCALARS, max_size=3), max_size=5),
    st.lists(st.integers(0, 99)),
)
def test_objects_may_touch(objects: list[dict[str, Any]], cuts: list[int]) -> None:
    data = "".join(map(json.dumps, objects)).encode()
    assert [json.loads(each) for each in split(JsonStream(10**6), data, cuts)] == objects


@given(st.binary(max_size=60), st.lists(st.integers(0, 60)))
def test_any_bytes_are_split_or_refused_in_the_same_way_however_they_are_cut(
    data: bytes, cuts: list[int]
) -> None:
    def outcome(cuts: list[int]) -> tuple[list[bytes], bool]:
        found: list[bytes] = []
        stream = JsonStream(10**6)
        edges = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
        try:
            for start, end in pairwise(edges):
                # Not all at once: what comes before a refusal counts.
                for value in stream.feed(data[start:end]):
                    found.append(value)  # noqa: PERF402
            last = stream.end()
        except BrokenStream:
            return found, True
        return found + ([last] if last is not None else []), False

    assert outcome(cuts) == outcome([])


@given(st.integers(1, 50), st.lists(st.integers(0, 60)))
def test_a_value_longer_than_the_limit_ends_the_stream(limit: int, cuts: list[int]) -> None:
    fits = b'"' + b"x" * (limit - 2) + b'"' if limit > 1 else b"1"
    assert split(JsonStream(max(limit, len(fits))), fits + b" ", cuts) == [fits]
    with pytest.raises(ValueTooLong):
        split(JsonStream(limit), b'["' + b"x" * limit + b'"]', cuts)
