"""Avro values as columns: resolution by the specification's rules, shapes that are rare, and what does not fit."""

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from headrace.schemas.columns.avro.codec import AvroCodec
from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.codec import PinnedSchema
from headrace.schemas.columns.decoded import Decoded, Unencodable
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.registry_client import NamedSchema, Schema

CODEC = AvroCodec()


def record(*fields: Any, name: str = "R", **more: Any) -> Any:
    named = [
        each if isinstance(each, dict) else {"name": each[0], "type": each[1]} for each in fields
    ]
    return {"type": "record", "name": name, "fields": named, **more}


def pin(schema: Any) -> PinnedSchema:
    return CODEC.pin(Schema(json.dumps(schema)))


def encoded(schema: Any, *values: Any) -> list[bytes]:
    parsed = fastavro.parse_schema(schema)
    rows = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        rows.append(out.getvalue())
    return rows


def decode(
    writer: Any, rows: list[bytes], reader: Any = None, wanted: pa.DataType | None = None
) -> Decoded:
    reading = pin(writer if reader is None else reader)
    decoder = CODEC.decoder(pin(writer), reading, wanted or CODEC.column_type(reading))
    return decoder.decode(ByteSpans.of(pa.array(rows, pa.binary())))


def read(writer: Any, reader: Any, *values: Any) -> list[Any]:
    found = decode(writer, encoded(writer, *values), reader)
    assert found.errors == {}
    return found.values.to_pylist()


def test_fields_are_added_dropped_renamed_and_promoted() -> None:
    writer = record(("a", "int"), ("b", "string"), ("c", "long"), ("d", "float"))
    reader = record(
        {"name": "e", "type": ["null", "string"], "default": None},
        {"name": "bb", "type": "bytes", "aliases": ["b"]},
        ("d", "double"),
        ("a", "double"),
        {"name": "f", "type": {"type": "map", "values": "int"}, "default": {"x": 1}},
        {"name": "g", "type": record(("x", "int"), name="G"), "default": {"x": 5}},
        {"name": "h", "type": "bytes", "default": "\u00ff"},
    )
    assert read(writer, reader, {"a": 1, "b": "x", "c": 2, "d": 0.5}) == [
        {"e": None, "bb": b"x", "d": 0.5, "a": 1.0, "f": [("x", 1)], "g": {"x": 5}, "h": b"\xff"}
    ]


def test_a_missing_field_without_default_is_told_for_each_row() -> None:
    writer, reader = record(("a", "int")), record(("a", "int"), ("b", "int"))
    found = decode(writer, encoded(writer, {"a": 1}, {"a": 2}), reader)
    assert found.values.to_pylist() == [None, None]
    assert found.errors[1] == (
        "the writer's R has no field 'b', and the reader's schema has no default for it"
    )


def test_a_mismatch_in_a_union_costs_only_the_rows_that_reach_it() -> None:
    writer = record(("a", ["null", "int", "string"]))
    rows = encoded(writer, {"a": 1}, {"a": "x"}, {"a": None})
    found = decode(writer, rows, record(("a", ["null", "long"])))
    assert [each and each["a"] for each in found.values.to_pylist()] == [1, None, None]
    assert found.errors == {1: "a: string is none of the reader's [null, long]"}


def test_unions_of_several_types_are_structs() -> None:
    union = ["null", "int", "string", record(("x", "int"), name="X")]
    column = CODEC.column_type(pin(union))
    assert str(column) == "struct<member0: int32, member1: string, member2: struct<x: int32>>"
    members: list[dict[str, Any]] = [{"member0": 5}, {"member1": "s"}, {"member2": {"x": 1}}]
    empty = {"member0": None, "member1": None, "member2": None}
    assert read(union, union, 5, "s", {"x": 1}, None) == [
        *[{**empty, **each} for each in members],
        None,
    ]
    # A writer without a union is read as the branch of its type; a promotion comes last.
    assert read("int", ["string", "int"], 3) == [{"member0": None, "member1": 3}]
    assert read("int", ["string", "double"], 3) == [{"member0": None, "member1": 3.0}]


def test_records_in_unions_go_by_name_then_by_shape() -> None:
    one, other = record(("x", "int"), name="n.A"), record(("x", "int"), name="n.B")
    assert read(other, [one, other], {"x": 1}) == [{"member0": None, "member1": {"x": 1}}]
    third = record(("x", "int"), name="m.C")
    assert read(third, [one, other], {"x": 1}) == [{"member0": {"x": 1}, "member1": None}]
    alias = record(("x", "int"), name="n.D", aliases=["m.C"])
    assert read(third, [one, alias], {"x": 1}) == [{"member0": None, "member1": {"x": 1}}]


def test_numbers_of_a_union_become_the_wider_one() -> None:
    assert str(CODEC.column_type(pin(["int", "null", "long"]))) == "int64"
    assert str(CODEC.column_type(pin(["float", "double"]))) == "double"
    assert read(["int", "null", "long"], ["int", "null", "long"], 1, None, 2**40) == [
        1,
        None,
        2**40,
    ]


def test_enums_have_defaults() -> None:
    writer = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}
    reader = {"type": "enum", "name": "E", "symbols": ["C", "A"], "default": "A"}
    assert read(writer, reader, "A", "B", "C") == ["A", "A", "C"]
    strict = {"type": "enum", "name": "E", "symbols": ["A"]}
    found = decode(writer, encoded(writer, "A", "B"), strict)
    assert found.values.to_pylist() == ["A", None]
    assert "symbol number 1 is none of the reader's" in found.errors[1]
    other = {"type": "enum", "name": "F", "symbols": ["A"]}
    assert "is not the reader's F" in decode(writer, encoded(writer, "A"), other).errors[0]


def test_times_keep_the_unit_in_which_they_were_written() -> None:
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    rows = encoded("long", 1500)
    for writer, reader, wanted in ((millis, micros, 1_500_000), (micros, millis, 1500)):
        found = decode(writer, rows, reader).values.cast(pa.int64())
        assert found.to_pylist() == [wanted]
    assert decode("long", rows, millis).values.cast(pa.int64()).to_pylist() == [1_500_000]
    assert decode(millis, rows, "long").values.to_pylist() == [1500]
    far = decode(millis, encoded("long", 2**62))
    assert "beyond the times" in far.errors[0]


def test_decimals_of_another_scale() -> None:
    def decimal(precision: int, scale: int) -> Any:
        return {"type": "fixed", "name": "D", "size": 5, "logicalType": "decimal", "precision": precision, "scale": scale}  # fmt: skip

    rows = encoded({"type": "fixed", "name": "D", "size": 5}, (12345).to_bytes(5, "big"), (-5).to_bytes(5, "big", signed=True))  # fmt: skip
    assert decode(decimal(9, 2), rows).values.to_pylist() == [Decimal("123.45"), Decimal("-0.05")]
    assert decode(decimal(9, 2), rows, decimal(9, 4)).values.to_pylist() == [
        Decimal("123.4500"),
        Decimal("-0.0500"),
    ]
    narrow = decode(decimal(9, 2), rows, decimal(4, 2))
    assert narrow.values.to_pylist() == [None, Decimal("-0.05")]
    assert narrow.errors == {0: "123.45 does not fit into decimal128(4, 2)"}


def test_annotations_that_make_no_sense_are_ignored() -> None:
    odd = {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5}
    assert str(CODEC.column_type(pin(odd))) == "binary"
    assert str(CODEC.column_type(pin({"type": "string", "logicalType": "date"}))) == "string"
    assert str(CODEC.column_type(pin({"type": "string", "logicalType": "uuid"}))) == "string"


def test_arrays_of_several_blocks_and_with_sizes() -> None:
    schema = record(("a", {"type": "array", "items": "string"}), ("b", "int"))
    plain = encoded(schema, {"a": ["x", "y", "z"], "b": 7})[0]
    blocks = b"\x02\x02x" + b"\x04\x02y\x02z" + b"\x00" + b"\x0e"
    sized = b"\x05\x0c\x02x\x02y\x02z" + b"\x00" + b"\x0e"
    found = decode(schema, [plain, blocks, sized, plain])
    assert found.errors == {}
    assert found.values.to_pylist() == [{"a": ["x", "y", "z"], "b": 7}] * 4


@pytest.mark.parametrize("items", ["long", "string", "double", record(("x", "int"), name="X")])
def test_long_arrays_in_few_rows(items: Any) -> None:
    value = {"long": 300, "string": "é", "double": 0.5}.get(
        items if isinstance(items, str) else "", {"x": 1}
    )
    schema = {"type": "array", "items": items}
    rows = [[value] * count for count in (0, 5000, 1, 2, 3000)]
    assert read(schema, schema, *rows) == rows


def test_few_bytes_cannot_mean_billions_of_values() -> None:
    nothing = {"type": "array", "items": "null"}
    found = decode(nothing, [b"\x06\x00", b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00"])
    assert found.values.to_pylist() == [[None, None, None], None]
    assert "more than 100000 empty values" in found.errors[1]
    many = {"type": "array", "items": "int"}
    assert sorted(decode(many, [b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x00"]).errors) == [0]


@pytest.mark.parametrize("items", ["null", record(name="Nothing"), record(("n", "null"), name="N")])
@pytest.mark.parametrize("is_read", [True, False])
def test_empty_values_of_all_arrays_of_a_value_are_counted_together(
    items: Any, *, is_read: bool
) -> None:
    nested = {"type": "array", "items": {"type": "array", "items": items}}
    schema = record(("n", nested), ("i", "int"))
    reader = schema if is_read else record(("i", "int"))
    few, many = b"\x06\x00", b"\xa0\xfe\x0a\x00"  # 3 and 90,000 elements
    rows = [
        b"\x04" + few + many + b"\x00" + b"\x02",
        b"\x04" + many + many + b"\x00" + b"\x02",
        b"\x02" + many + b"\x02" + many + b"\x00" + b"\x02",
        b"\x00" + b"\x02",
    ]
    found = decode(schema, rows, reader)
    assert sorted(found.errors) == [1, 2]
    assert all("more than 100000 empty values" in why for why in found.errors.values())
    assert [None if each is None else each["i"] for each in found.values.to_pylist()] == [
        1,
        None,
        None,
        1,
    ]
    if is_read:
        assert [len(each) for each in found.values.to_pylist()[0]["n"]] == [3, 90_000]


def test_of_equal_keys_in_a_map_the_last_one_counts() -> None:
    schema = {"type": "map", "values": "int"}
    twice = b"\x04\x02a\x02\x02a\x04\x00"
    found = decode(schema, [twice, b"\x02\x02a\x02\x00"])
    assert found.values.to_pylist() == [[("a", 2)], [("a", 1)]]


TREE = record(("v", "int"), ("next", ["null", "T"]), name="T")


def test_a_record_that_contains_itself_needs_a_choice_of_fields() -> None:
    with pytest.raises(InvalidSchema, match="the record T contains itself"):
        CODEC.column_type(pin(TREE))
    rows = encoded(TREE, {"v": 1, "next": {"v": 2, "next": {"v": 3, "next": None}}})
    wanted = pa.struct([("v", pa.int32()), ("next", pa.struct([("v", pa.int32())]))])
    assert decode(TREE, rows, wanted=wanted).values.to_pylist() == [{"v": 1, "next": {"v": 2}}]
    only = pa.struct([("v", pa.int32())])
    assert decode(TREE, rows, wanted=only).values.to_pylist() == [{"v": 1}]


def test_nesting_without_end_is_an_error_of_its_row() -> None:
    only = pa.struct([("v", pa.int32())])
    deep = b"\x02\x02" * 100_000 + b"\x02\x00"
    found = decode(TREE, [deep, b"\x04\x00"], wanted=only)
    assert found.values.to_pylist() == [None, {"v": 2}]
    assert found.errors == {0: "nested too deeply"}


def test_bytes_alone_are_not_wrapped() -> None:
    assert decode("bytes", [b"", b"\x00\x01"]).values.to_pylist() == [b"", b"\x00\x01"]
    assert decode("bytes", [b"text"], "string").values.to_pylist() == ["text"]
    column = pa.array([b"x", None], pa.binary())
    assert CODEC.encoder(pin("bytes"), column.type).encode(column).to_pylist() == [b"x", None]


def test_references_are_pinned_inside() -> None:
    user = NamedSchema("U", Schema(json.dumps(record(("name", "string"), name="U"))))
    group = Schema(json.dumps(record(("users", {"type": "array", "items": "U"}), name="G")))
    pinned = CODEC.pin(group, [user])
    assert str(CODEC.column_type(pinned)) == "struct<users: list<element: struct<name: string>>>"
    assert CODEC.record_name(pinned) == "G"
    assert CODEC.record_name(pin("int")) == ""


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (pa.struct([("b", pa.int32())]), "value has no field 'b': it has a"),
        (pa.struct([("a", pa.int64())]), r"value\.a has the type int32, not int64"),
        (pa.int32(), r"value has the type struct<a: int32>, not int32"),
    ],
)
def test_columns_that_cannot_be_had_are_told(wanted: Any, words: str) -> None:
    with pytest.raises(InvalidSchema, match=words):
        decode(record(("a", "int")), [], wanted=wanted)


@pytest.mark.parametrize(
    ("schema", "column", "words"),
    [
        ("int", pa.array([2**31], pa.int64()), "no int"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, pa.array(["B"]), "'B' is no symbol of E"),
        ({"type": "fixed", "name": "F", "size": 2}, pa.array([b"x"]), "does not have the 2 bytes"),
        ({"type": "array", "items": "int"}, pa.array([[None]], pa.list_(pa.int32())), "element is null"),
        (["int", "string"], pa.array([{"member0": 1, "member1": "x"}]), "exactly one member"),
    ],
)  # fmt: skip
def test_values_that_the_schema_does_not_allow(schema: Any, column: pa.Array, words: str) -> None:
    if str(column.type).startswith("struct"):
        column = column.cast(CODEC.column_type(pin(schema)))
    with pytest.raises(Unencodable, match=words):
        CODEC.encoder(pin(schema), column.type).encode(column)


@pytest.mark.parametrize(
    ("schema", "column", "words"),
    [
        ("int", pa.string(), "value is string, and the schema wants int"),
        (
            record(("a", "int")),
            pa.struct([("b", pa.int32())]),
            "has the column 'b', and R has no such",
        ),
        (record(("a", "int")), pa.struct([]), "has no column 'a', and the schema has no default"),
        ("null", pa.int32(), "the schema wants null"),
        (["null", "int"], pa.string(), "value is string, and the schema wants int"),
        ("long", pa.timestamp("us", tz="UTC"), "the schema wants long"),
    ],
)
def test_columns_that_the_schema_cannot_hold(schema: Any, column: pa.DataType, words: str) -> None:
    with pytest.raises(InvalidSchema, match=words):
        CODEC.encoder(pin(schema), column)


def test_missing_columns_are_written_as_their_defaults() -> None:
    schema = record(
        ("a", "int"),
        {"name": "b", "type": ["null", "int"], "default": None},
        {"name": "c", "type": {"type": "array", "items": "string"}, "default": ["x"]},
    )
    column = pa.array([{"a": 1}, {"a": 2}], pa.struct([("a", pa.int32())]))
    rows = CODEC.encoder(pin(schema), column.type).encode(column)
    assert read_rows(schema, rows) == [
        {"a": 1, "b": None, "c": ["x"]},
        {"a": 2, "b": None, "c": ["x"]},
    ]


def read_rows(schema: Any, rows: pa.Array) -> list[Any]:
    parsed = fastavro.parse_schema(schema)
    return [fastavro.schemaless_reader(io.BytesIO(row), parsed, None) for row in rows.to_pylist()]


def test_names_that_avro_does_not_allow() -> None:
    column = pa.struct([("a", pa.int32())])
    assert '"name":"my_topic_1"' in CODEC.derived(column, "my-topic.1").text
    with pytest.raises(InvalidSchema, match="no field with the name 'a b'"):
        CODEC.derived(pa.struct([("a b", pa.int32())]), "x")
    with pytest.raises(InvalidSchema, match="which Avro has no type for"):
        CODEC.derived(pa.duration("us"), "x")
