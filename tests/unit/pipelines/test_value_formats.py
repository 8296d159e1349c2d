"""Text and JSON out of bytes: many at once, the bad ones found one by one."""

import datetime
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from headrace.pipelines.value_formats import Decoded, decode_column

ORDER = pa.struct([("id", pa.int64()), ("name", pa.string())])


def decode(values: list[bytes | None], wanted: Any) -> Decoded:
    return decode_column(pa.array(values, pa.binary()), wanted)


def test_text() -> None:
    found = decode([b"a", None, "é".encode(), b"\xff"], pa.string())
    assert found.values.to_pylist() == ["a", None, "é", None]
    assert list(found.errors) == [3]


def test_json_of_the_wanted_fields_only() -> None:
    found = decode([b'{"id":1,"name":"x","more":[1]}', None, b'{"name":null}'], ORDER)
    assert found.values.to_pylist() == [{"id": 1, "name": "x"}, None, {"id": None, "name": None}]
    assert not found.errors


@pytest.mark.parametrize(
    "bad",
    [b"", b"{", b"[1]", b"null", b'{"id":"x"}', b'{"id":1}{"id":2}', b"x", b'{"id":1}}', b"\xff"],
)
def test_a_bad_value_does_not_spoil_its_neighbours(bad: bytes) -> None:
    values: list[bytes | None] = [b'{"id":%d}' % number for number in range(20)]
    values[7] = bad
    values[9] = None
    found = decode(values, ORDER)
    ids = [each and each["id"] for each in found.values.to_pylist()]
    assert ids == [number if number not in (7, 9) else None for number in range(20)]
    assert list(found.errors) == [7]


def test_values_cannot_lend_each_other_their_parts() -> None:
    found = decode([b'{"id":', b'1}{"id":2}', b'{"id":1}{"id":2}', b""], ORDER)
    assert sorted(found.errors) == [0, 1, 2, 3]


def test_space_around_and_lines_inside_are_json_too() -> None:
    found = decode([b' {"id":\n1} ', b'\n{"id":2}\n'], ORDER)
    assert [each["id"] for each in found.values.to_pylist()] == [1, 2]


def test_nested_fields_dates_and_times() -> None:
    wanted = pa.struct(
        [
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("lines", pa.list_(pa.struct([("sku", pa.string()), ("due", pa.date32())]))),
        ]
    )
    text = (
        b'{"day":"2026-01-02","at":"2026-01-02T03:04:05Z","lines":[{"sku":"a","due":"2026-02-03"}]}'
    )
    found = decode([text], wanted).values.to_pylist()[0]
    assert found["day"] == datetime.date(2026, 1, 2)
    assert found["at"] == datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    assert found["lines"] == [{"sku": "a", "due": datetime.date(2026, 2, 3)}]
