"""Text and JSON out of bytes: many at once, the bad ones found one by one."""

import datetime
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from headrace.pipelines.columns.value_formats import check_type, decode_column
from headrace.pipelines.options.known_options import OptionError
from headrace.schemas.columns.decoded import Decoded

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


def one(text: str, wanted: Any) -> Any:
    """The field `a` of an object, or what is wrong."""
    found = decode([text.encode()], pa.struct([("a", wanted)]))
    return found.errors.get(0) or found.values[0].as_py()["a"]


def test_base64_is_opened() -> None:
    assert one('{"a":"aGVsbG8="}', pa.binary()) == b"hello"
    assert one('{"a":"aGVs\\nbG8="}', pa.binary()) == b"hello"
    assert "is not base64" in one('{"a":"hello"}', pa.binary())


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "+INF"])
def test_numbers_that_are_none_with_and_without_quotes(word: str) -> None:
    quoted, plain = one(f'{{"a":"{word}"}}', pa.float64()), one(f'{{"a":{word}}}', pa.float64())
    assert repr(quoted) == repr(plain) == repr(float(word))


@pytest.mark.parametrize(
    ("json_text", "text"),
    [
        ("1", "1"),
        ("1.50", "1.5"),
        ("1e10", "1.0E10"),
        ("0.00012", "1.2E-4"),
        ("true", "true"),
        ('{"b" : [1, "x"]}', '{"b":[1,"x"]}'),
        ("'it\"s'", 'it"s'),
        ('"\\ud83d"', "?"),
    ],
)
def test_anything_where_text_is_wanted(json_text: str, text: str) -> None:
    assert one(f'{{"a":{json_text}}}', pa.string()) == text


def test_of_a_name_that_stands_twice_the_last_counts() -> None:
    assert one('{"a":1,"a":2}', pa.int64()) == 2
    assert "is not a whole number" in one('{"a":"x","a":2}', pa.int64())


def test_times_in_every_form() -> None:
    zoned, local = pa.timestamp("us", tz="UTC"), pa.timestamp("us")
    at = datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001 - with and without a zone
    assert one('{"a":"2024-01-02T03:04:05.123456789Z"}', zoned) == at.replace(tzinfo=datetime.UTC)
    assert one('{"a":"2024-01-02 03:04:05.123456789"}', local) == at
    assert one('{"a":1704164645}', zoned) == at.replace(microsecond=0, tzinfo=datetime.UTC)
    assert one('{"a":"2024-1-2"}', pa.date32()) == at.date()
    assert "no timestamp" in one('{"a":"03:04"}', zoned)


def test_maps_and_structs_without_fields() -> None:
    assert one('{"a":{"x":1,"y":null}}', pa.map_(pa.string(), pa.int64())) == [
        ("x", 1),
        ("y", None),
    ]
    found = decode([b"{}", b'{"a":1}', None, b"x"], pa.struct([]))
    assert found.values.to_pylist() == [{}, {}, None, None]
    assert list(found.errors) == [3]


@pytest.mark.parametrize("wanted", [pa.duration("us"), pa.list_(pa.duration("us")), pa.null()])
def test_types_that_json_is_not_read_as_are_told_by_name(wanted: pa.DataType) -> None:
    with pytest.raises(OptionError, match=r"value\.a.* JSON cannot be read as"):
        check_type(pa.field("value", pa.struct([("a", wanted)])), "value")


def test_deep_nesting_costs_its_record_only() -> None:
    deep = b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    found = decode(
        [b'{"id":1}', deep, b'{"id":2}'],
        pa.struct([("id", pa.int64()), ("m", pa.map_(pa.string(), pa.string()))]),
    )
    assert list(found.errors) == [1]
