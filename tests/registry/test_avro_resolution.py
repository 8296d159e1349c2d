"""Avro columns are resolved as Java's library resolves: hand-picked pairs of schemas, and generated ones."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from headrace.schemas.columns.avro.decoder import AvroDecoder
from headrace.schemas.columns.avro.types import branches_of
from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.formats.avro.parser import parse_avro
from headrace.schemas.formats.avro.types import Type
from tests.property.avro_samples import without_logical_types
from tests.property.test_avro_decoder import evolved
from tests.registry.serde_strangers import NAMES, ProcessStranger, StrangerRefused, stranger

pytestmark = pytest.mark.skipif("java" not in NAMES, reason="HEADRACE_STRANGERS is not 1")


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessStranger]:
    with stranger("java", "http://127.0.0.1:9", tmp_path_factory.mktemp("java")) as process:
        assert isinstance(process, ProcessStranger)
        yield process


def record(name: str, *fields: Any, **more: Any) -> Any:
    named = [
        each if isinstance(each, dict) else {"name": each[0], "type": each[1]} for each in fields
    ]
    return {"type": "record", "name": name, "fields": named, **more}


def enum(name: str, *symbols: str, **more: Any) -> Any:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


A, B, C = (record(name, ("x", "int")) for name in ("n.A", "n.B", "m.C"))
PAIRS: list[tuple[Any, Any, list[Any]]] = [
    ("int", "long", [-5]),
    ("int", "float", [2**24 + 1]),
    ("int", "double", [7]),
    ("long", "float", [2**53 + 1, 16777217]),
    ("long", "double", [2**53 + 1]),
    ("float", "double", [0.1]),
    ("string", "bytes", ["é"]),
    ("bytes", "string", [b"text"]),
    ("long", "int", [1]),
    ("double", "float", [1.0]),
    ("string", "int", ["x"]),
    (["null", "int"], "int", [None, 3]),
    ("int", ["null", "int"], [3]),
    ("int", ["null", "long"], [3]),
    ("int", ["string", "double", "long"], [3]),
    ("int", ["string", "float"], [3]),
    ("long", ["float", "double"], [3]),
    (["int", "string"], ["string", "int"], [3, "x"]),
    (["int", "string", "null"], ["null", "long"], [3, "x", None]),
    (A, B, [{"x": 1}]),
    (B, [A, B], [{"x": 1}]),
    (C, [A, B], [{"x": 1}]),
    (C, [A, {**B, "name": "n.C"}], [{"x": 1}]),
    (C, [A, {**B, "aliases": ["m.C"]}], [{"x": 1}]),
    (record("R", ("a", "int")), record("R", ("b", "int")), [{"a": 1}]),
    (record("R", ("a", "int")), record("R", {"name": "b", "type": "int", "default": 5}), [{"a": 1}]),
    (record("R", ("a", "int")), record("R", {"name": "b", "type": "long", "aliases": ["a"]}), [{"a": 1}]),
    (record("R", ("a", "int")), record("R", {"name": "b", "type": ["null", "int"], "default": None}), [{"a": 1}]),
    (record("R", ("a", "int"), ("c", "string")), record("R", ("c", "string")), [{"a": 1, "c": "x"}]),
    (enum("E", "A", "B"), enum("E", "B", "A"), ["A", "B"]),
    (enum("E", "A", "B"), enum("E", "A"), ["A", "B"]),
    (enum("E", "A", "B"), enum("E", "A", default="A"), ["A", "B"]),
    ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 2}, [b"ab"]),
    ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}, [b"ab"]),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "double"}, [[1, 2], []]),
    ({"type": "map", "values": "int"}, {"type": "map", "values": ["null", "long"]}, [{"a": 1}]),
    ({"type": "array", "items": "int"}, {"type": "map", "values": "int"}, [[1]]),
    ("int", {"type": "array", "items": "int"}, [1]),
]  # fmt: skip


def encoded(schema: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def plain(value: Any, type_: Type) -> Any:  # noqa: PLR0911 - one line per type
    """A column's value as Java's value looks in JSON."""
    if value is None:
        return None
    match type_.kind:
        case "union":
            branches = branches_of(type_)
            if branches.widened:
                return value
            if not branches.is_struct:
                return plain(value, branches.members[0])
            (number,) = [at for at, each in enumerate(value.values()) if each is not None]
            return plain(value[f"member{number}"], branches.members[number])
        case "record":
            return {each.name: plain(value[each.name], each.type) for each in type_.fields}
        case "array":
            return [plain(each, type_.element) for each in value]
        case "map":
            return {name: plain(each, type_.element) for name, each in value}
        case "bytes" | "fixed":
            return value.hex()
    return value


def compare(java: ProcessStranger, writer: Any, reader: Any, rows: list[bytes]) -> None:
    texts = json.dumps(writer), json.dumps(reader)
    wanted, _ = parse_avro(texts[1])
    decoder = AvroDecoder(parse_avro(texts[0])[0], wanted)
    found = decoder.decode(ByteSpans.of(pa.array(rows, pa.binary())))
    for number, value in enumerate(found.values.to_pylist()):
        theirs = resolved(java, *texts, rows[number])
        if isinstance(theirs, StrangerRefused):
            assert number in found.errors, f"Java refuses {texts}: {theirs}"
        else:
            assert number not in found.errors, f"{texts}: {found.errors[number]}, Java: {theirs}"
            assert _same(plain(value, wanted), theirs), f"{texts}: {value}, Java: {theirs}"


def resolved(java: ProcessStranger, writer: str, reader: str, data: bytes) -> Any:
    """What Java makes of a row, or its refusal."""
    try:
        return java.resolve(writer, reader, data)
    except StrangerRefused as refused:
        return refused


def _same(ours: Any, theirs: Any) -> bool:
    """JSON has no infinities, and shows floats in fewer digits."""
    if isinstance(ours, float):
        if isinstance(theirs, str):
            return repr(ours) == {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}[theirs]
        return bool(pa.scalar(ours, pa.float32()) == pa.scalar(theirs, pa.float32()))
    if isinstance(ours, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    return bool(ours == theirs)


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_hand_picked_pairs(java: ProcessStranger, number: int) -> None:
    writer, reader, values = PAIRS[number]
    compare(java, writer, reader, [encoded(writer, value) for value in values])


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(case=evolved())
def test_generated_pairs(java: ProcessStranger, case: tuple[Any, Any, list[bytes]]) -> None:
    writer, reader, rows = case
    compare(java, without_logical_types(writer), without_logical_types(reader), rows)
