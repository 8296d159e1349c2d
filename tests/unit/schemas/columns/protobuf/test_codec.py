"""Protobuf messages as columns: every kind of field, Google's own messages, evolution by numbers, and what does not fit."""

from decimal import Decimal
from typing import Any

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("grpc_tools")

import pyarrow as pa

from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.codec import PinnedSchema
from headrace.schemas.columns.decoded import Decoded, Unencodable
from headrace.schemas.columns.protobuf.codec import ProtobufCodec
from headrace.schemas.columns.protobuf.messages import message_class, message_type
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.registry_client import PROTOBUF, NamedSchema, Schema
from headrace.schemas.wire_format import encode_message_indexes

CODEC = ProtobufCodec()
EVERYTHING = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
message All {
  int32 i32 = 1; int64 i64 = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
  fixed32 f32 = 7; fixed64 f64 = 8; sfixed32 sf32 = 9; sfixed64 sf64 = 10;
  float fl = 11; double db = 12; bool b = 13; string str = 14; bytes by = 15;
  Colour colour = 16;
  optional int32 maybe = 17;
  Inner inner = 18;
  repeated int64 numbers = 19;
  repeated Inner inners = 20;
  map<string, int32> counts = 21;
  map<int64, Inner> by_id = 22;
  oneof choice { string text = 23; Inner one = 24; int32 number = 25; }
  google.protobuf.Timestamp at = 26;
  google.protobuf.Duration took = 27;
  google.protobuf.Int32Value wrapped = 28;
  google.protobuf.Struct free = 29;
  google.protobuf.Any any = 30;
  repeated google.protobuf.Timestamp times = 31;
  google.protobuf.StringValue words = 32;
  message Inner { string name = 1; Colour colour = 2; }
  enum Colour { NONE = 0; RED = 1; }
}
message Other { int32 x = 1; }
"""


def pin(text: str, message: str = "", *references: NamedSchema) -> PinnedSchema:
    return CODEC.pin(Schema(text, PROTOBUF), references, message=message)


def decode(
    writer: PinnedSchema,
    payload: list[bytes],
    reader: PinnedSchema | None = None,
    wanted: pa.DataType | None = None,
    header_rest: bytes | None = None,
) -> Decoded:
    reader = reader or writer
    decoder = CODEC.decoder(writer, reader, wanted or CODEC.column_type(reader))
    return decoder.decode(ByteSpans.of(pa.array(payload, pa.binary())), header_rest)


def make(schema: PinnedSchema, **fields: Any) -> Any:
    return message_class(message_type(schema))(**fields)


FULL: dict[str, Any] = {
    "i32": -5,
    "i64": -(2**63),
    "u32": 2**32 - 1,
    "u64": Decimal(2**64 - 1),
    "s32": -7,
    "s64": 8,
    "f32": 9,
    "f64": Decimal(10),
    "sf32": -11,
    "sf64": -12,
    "fl": 1.5,
    "db": -2.5,
    "b": True,
    "str": "é",
    "by": b"\x00\xff",
    "colour": "RED",
    "maybe": 0,
    "inner": {"name": "in", "colour": "NONE"},
    "numbers": [1, -1, 300],
    "inners": [{"name": "a", "colour": "RED"}, {"name": "", "colour": "NONE"}],
    "counts": [("y", 0)],
    "by_id": [(7, {"name": "seven", "colour": "RED"})],
    "text": None,
    "one": {"name": "chosen", "colour": "NONE"},
    "number": None,
    "at": 1_700_000_000_123_456,
    "took": -1_500_000,
    "wrapped": 0,
    "free": '{"a":[1.0,null,"x"]}',
    "any": {"type_url": "t/x", "value": b"v"},
    "times": [0, -1],
    "words": None,
}
EMPTY: dict[str, Any] = {
    name: {
        "str": "",
        "by": b"",
        "b": False,
        "fl": 0.0,
        "db": 0.0,
        "colour": "NONE",
        "numbers": [],
        "inners": [],
        "counts": [],
        "by_id": [],
        "times": [],
    }.get(name, 0 if name in ("i32", "i64", "u32", "s32", "s64", "f32", "sf32", "sf64") else None)
    for name in FULL
} | {"u64": Decimal(0), "f64": Decimal(0)}


def test_every_kind_of_field_there_and_back() -> None:
    schema = pin(EVERYTHING)
    assert schema.message == "shop.All"
    column = pa.array([FULL, None, EMPTY], CODEC.column_type(schema))
    written = CODEC.encoder(schema, column.type).encode(column)
    assert written[1].as_py() is None
    decoded = decode(schema, [written[0].as_py(), written[2].as_py()])
    assert decoded.errors == {}
    assert decoded.values.to_pylist() == column.take(pa.array([0, 2])).to_pylist()
    assert (
        written[2].as_py() == b"\x00"
    )  # nothing but the message index: what has its zero is not written


def test_the_types_of_columns() -> None:
    types = {each.name: each.type for each in CODEC.column_type(pin(EVERYTHING))}  # type: ignore[attr-defined]
    assert str(types["u32"]) == "int64"
    assert str(types["u64"]) == "decimal128(20, 0)"
    assert str(types["colour"]) == "string"
    assert str(types["took"]) == "duration[us]"
    assert str(types["at"]) == "timestamp[us, tz=UTC]"
    assert str(types["wrapped"]) == "int32"
    assert str(types["free"]) == "string"
    assert str(types["by_id"]).startswith("map<int64, struct<name: string")


def test_the_library_reads_what_is_written() -> None:
    schema = pin(EVERYTHING)
    column = pa.array([FULL], CODEC.column_type(schema))
    data = CODEC.encoder(schema, column.type).encode(column)[0].as_py()
    message: Any = message_class(message_type(schema)).FromString(data[1:])
    assert message.WhichOneof("choice") == "one"
    assert (message.took.seconds, message.took.nanos) == (-1, -500_000_000)
    assert (message.times[1].seconds, message.times[1].nanos) == (-1, 999_999_000)
    assert message.HasField("wrapped")
    assert message.by_id[7].name == "seven"


def test_fields_go_by_number() -> None:
    old = pin('syntax = "proto3"; message M { int32 a = 1; string gone = 2; }')
    new = pin(
        'syntax = "proto3"; message M { int32 renamed = 1; optional string added = 3; int64 b = 4; }'
    )
    data = b"\x00" + make(old, a=7, gone="x").SerializeToString()
    found = decode(old, [data], new)
    assert found.values.to_pylist() == [{"renamed": 7, "added": None, "b": 0}]
    later = b"\x00" + make(new, renamed=8, b=9).SerializeToString()
    assert decode(new, [later], old).values.to_pylist() == [{"a": 8, "gone": ""}]


def test_message_indexes_choose_the_message() -> None:
    nested = (
        "syntax = 'proto3'; message A { message B { int32 x = 1; } } message C { int32 y = 1; }"
    )
    first, inner, last = pin(nested), pin(nested, "A.B"), pin(nested, "C")
    assert [each.message for each in (first, inner, last)] == ["A", "A.B", "C"]
    with_index = encode_message_indexes([0, 0]) + make(inner, x=5).SerializeToString()
    other = encode_message_indexes([1]) + make(last, y=6).SerializeToString()
    nowhere = encode_message_indexes([9]) + b""
    found = decode(inner, [with_index, other, nowhere, b"", b"\x00"])
    assert found.values.to_pylist() == [{"x": 5}, None, None, None, None]
    assert found.errors[1] == "the record is a C, not a A.B"
    assert found.errors[2] == "the writer's schema has no message at [9]"
    assert found.errors[4] == "the record is a A, not a A.B"
    bare = decode(inner, [with_index[3:]], header_rest=with_index[:3])
    assert bare.values.to_pylist() == [{"x": 5}]
    assert decode(inner, [b""], header_rest=b"\x00").errors[0] == "the record is a A, not a A.B"
    with pytest.raises(InvalidSchema, match="no message 'D'"):
        pin(nested, "D")
    column = pa.array([{"x": 5}], CODEC.column_type(inner))
    assert CODEC.encoder(inner, column.type).encode(column)[0].as_py() == with_index


def test_a_readers_own_message_may_have_another_name() -> None:
    theirs = pin('syntax = "proto3"; package theirs; message T { int32 a = 1; int32 b = 2; }')
    mine = pin('syntax = "proto3"; message Mine { int64 b = 2; }')
    data = b"\x00" + make(theirs, a=1, b=2).SerializeToString()
    assert decode(theirs, [data], mine).values.to_pylist() == [{"b": 2}]


def test_damaged_messages_cost_themselves_only() -> None:
    schema = pin(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { string a = 1; google.protobuf.Timestamp t = 2; }'
    )
    good = b"\x00" + make(schema, a="x").SerializeToString()
    far = make(schema)
    far.t.seconds = 2**62
    rows = [good, b"\x00\x0a\xff", b"\x00\x0a\x01\xff", b"\x00" + far.SerializeToString(), good]
    found = decode(schema, rows)
    assert sorted(found.errors) == [1, 2, 3]
    assert [each and each["a"] for each in found.values.to_pylist()] == ["x", None, None, None, "x"]


def test_imports_and_old_syntax() -> None:
    common = NamedSchema(
        "common.proto", Schema('syntax = "proto3"; message Money { int64 cents = 1; }', PROTOBUF)
    )
    text = 'syntax = "proto2"; import "common.proto"; message M { required string id = 1; optional Money price = 2; optional int32 n = 3 [default = 5]; repeated int32 packed = 4 [packed = true]; optional group G = 5 { optional int32 x = 1; } }'
    schema = pin(text, "", common)
    column = pa.array(
        [{"id": "a", "price": {"cents": 5}, "n": None, "packed": [1, 2], "g": {"x": 1}}],
        CODEC.column_type(schema),
    )
    data = CODEC.encoder(schema, column.type).encode(column)
    assert decode(schema, data.to_pylist()).values.to_pylist() == column.to_pylist()
    with pytest.raises(InvalidSchema, match="has no column 'id', which M requires"):
        CODEC.encoder(schema, pa.struct([("n", pa.int32())]))
    missing = pa.array([{"id": None}], pa.struct([("id", pa.string())]))
    with pytest.raises(Unencodable, match=r"value\.id is null"):
        CODEC.encoder(schema, missing.type).encode(missing)


def test_unknown_values_of_an_enum_are_their_number() -> None:
    old = pin('syntax = "proto3"; message M { E e = 1; } enum E { A = 0; }')
    new = pin('syntax = "proto3"; message M { E e = 1; } enum E { A = 0; B = 7; }')
    data = b"\x00" + make(new, e=7).SerializeToString()
    assert decode(new, [data], old).values.to_pylist() == [{"e": "7"}]


def test_a_message_that_contains_itself_needs_a_choice_of_fields() -> None:
    tree = pin('syntax = "proto3"; message T { int32 v = 1; T left = 2; repeated T more = 3; }')
    with pytest.raises(InvalidSchema, match="the message T contains itself"):
        CODEC.column_type(tree)
    leaf = pa.struct([("v", pa.int32())])
    wanted = pa.struct([("left", leaf), ("v", pa.int32())])
    message = make(tree, v=1)
    message.left.v = 2
    found = decode(tree, [b"\x00" + message.SerializeToString()], wanted=wanted)
    assert found.values.to_pylist() == [{"left": {"v": 2}, "v": 1}]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (pa.struct([("nope", pa.int32())]), "value has no field 'nope': it has x"),
        (pa.struct([("x", pa.string())]), r"value\.x has the type int32, not string"),
        (pa.string(), "value is a struct, not string"),
    ],
)
def test_columns_that_cannot_be_had_are_told(wanted: Any, words: str) -> None:
    with pytest.raises(InvalidSchema, match=words):
        decode(pin(EVERYTHING, "Other"), [], wanted=wanted)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"i32": 2**31}, r"value\.i32"),
        ({"u32": -1}, r"value\.u32"),
        ({"colour": "BLUE"}, "'BLUE' is no value of shop.All.Colour"),
        ({"numbers": [1, None]}, r"value\.numbers has a null"),
        ({"text": "a", "number": 1}, "more than one of text, one, number"),
        ({"free": "{"}, r"value\.free"),
    ],
)
def test_values_that_the_schema_does_not_allow(row: dict[str, Any], words: str) -> None:
    schema = pin(EVERYTHING)
    whole = {each.name: each.type for each in CODEC.column_type(schema)}  # type: ignore[attr-defined]
    wide = {name: pa.int64() if name in ("i32", "u32") else whole[name] for name in row}
    column = pa.array([row], pa.struct(list(wide.items())))
    with pytest.raises(Unencodable, match=words):
        CODEC.encoder(schema, column.type).encode(column)


def test_a_derived_schema_carries_its_columns() -> None:
    column = pa.array(
        [
            {"id": 1, "name": None, "inner": {"at": 5}, "tags": ["a"], "m": [("k", {"x": 2})]},
            {"id": 2, "name": "n", "inner": None, "tags": [], "m": []},
        ],
        pa.struct(
            [
                pa.field("id", pa.int64(), nullable=False),
                ("name", pa.string()),
                ("inner", pa.struct([("at", pa.timestamp("us", tz="UTC"))])),
                ("tags", pa.list_(pa.field("element", pa.string()))),
                ("m", pa.map_(pa.string(), pa.struct([("x", pa.int32())]))),
            ]
        ),
    )
    derived = CODEC.derived(column.type, "my-topic.1")
    schema = CODEC.pin(derived)
    assert CODEC.record_name(schema) == "my_topic_1"
    assert "optional string name = 2;" in derived.text
    data = CODEC.encoder(schema, column.type).encode(column)
    assert decode(schema, data.to_pylist()).values.to_pylist() == column.to_pylist()
    with pytest.raises(InvalidSchema, match="which Protobuf has no type for"):
        CODEC.derived(pa.struct([("d", pa.date32())]), "x")
    with pytest.raises(InvalidSchema, match="write a struct"):
        CODEC.derived(pa.string(), "x")
