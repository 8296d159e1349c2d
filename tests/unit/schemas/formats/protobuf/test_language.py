"""Protobuf: each named difference with a case on both sides, references, and what is no schema."""

import pytest

from headrace.schemas.formats.protobuf.language import ProtobufFormat
from headrace.schemas.formats.schema_format import InvalidSchema


def kinds(reader: str, writer: str) -> set[str]:
    parse = ProtobufFormat().parse
    found = parse(full(reader), {}).can_read(parse(full(writer), {}))
    return {each.kind for each in found}


def full(body: str) -> str:
    return body if body.startswith("syntax") else f'syntax = "proto3"; package p; {body}'


def proto2(body: str) -> str:
    return f'syntax = "proto2"; package p; {body}'


A = "message M { int32 a = 1; }"


@pytest.mark.parametrize(
    ("kind", "reader", "writer"),
    [
        ("PACKAGE_CHANGED", 'syntax = "proto3"; package q; message M { int32 a = 1; }', A),
        ("MESSAGE_REMOVED", A, f"{A} message N {{}}"),
        ("FIELD_KIND_CHANGED", "message M { N a = 1; } message N {}", f"{A} message N {{}}"),
        ("FIELD_SCALAR_KIND_CHANGED", "message M { string a = 1; }", A),
        ("FIELD_SCALAR_KIND_CHANGED", "message M { sint32 a = 1; }", A),
        ("FIELD_NAMED_TYPE_CHANGED", "message M { N a = 1; } message N {} message O {}",
         "message M { O a = 1; } message N {} message O {}"),
        ("FIELD_NUMERIC_LABEL_CHANGED", "message M { repeated int32 a = 1; }", "message M { optional int32 a = 1; }"),
        ("REQUIRED_FIELD_ADDED", proto2("message M { required int32 a = 1; }"), proto2("message M { }")),
        ("REQUIRED_FIELD_REMOVED", proto2("message M { }"), proto2("message M { required int32 a = 1; }")),
        ("ONEOF_FIELD_REMOVED", "message M { oneof o { int32 a = 1; } }",
         "message M { oneof o { int32 a = 1; int32 b = 2; } }"),
        ("FIELD_MOVED_TO_EXISTING_ONEOF", "message M { oneof o { int32 a = 1; int32 b = 2; } }",
         "message M { oneof o { int32 a = 1; } int32 b = 2; }"),
        ("FIELD_MOVED_TO_EXISTING_ONEOF", "message M { oneof other { int32 a = 1; int32 b = 2; } }",
         "message M { oneof o { int32 a = 1; } int32 b = 2; }"),
        ("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "message M { oneof o { int32 a = 1; int32 b = 2; } }",
         "message M { int32 a = 1; int32 b = 2; }"),
    ],
)  # fmt: skip
def test_a_rule_is_broken(kind: str, reader: str, writer: str) -> None:
    assert kind in kinds(reader, writer)


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (A, A),
        (f"{A} message N {{}}", A),
        ("message M { int32 a = 1; string b = 2; }", A),
        (A, "message M { int32 a = 1; string b = 2; }"),
        ("message M { int32 renamed = 1; }", A),
        ("message M { int64 a = 1; }", A),
        ("message M { bool a = 1; }", A),
        ("message M { bytes a = 1; }", "message M { string a = 1; }"),
        ("message M { repeated string a = 1; }", "message M { string a = 1; }"),
        ("message M { oneof o { int32 a = 1; } }", A),
        (A, "message M { oneof o { int32 a = 1; } }"),
        ("message M { E a = 1; } enum E { X = 0; Y = 1; }", "message M { E a = 1; } enum E { X = 0; }"),
        ("message M { M a = 1; }", "message M { M a = 1; }"),
        ("message M { repeated int32 a = 1; }", A),  # a label that is not written counts for none
        ("message M { oneof o { int32 a = 1; } int32 b = 2; }", "message M { oneof o { int32 a = 1; int32 b = 2; } }"),
        ("message M { map<string, int64> a = 1; }", "message M { map<string, int32> a = 1; }"),
    ],
)  # fmt: skip
def test_a_rule_is_kept(reader: str, writer: str) -> None:
    assert not kinds(reader, writer)


def test_imports_are_references() -> None:
    text = 'syntax = "proto3"; import "other.proto"; message M { q.N n = 1; }'
    other = 'syntax = "proto3"; package q; message N { int32 a = 1; }'
    ProtobufFormat().parse(text, {"other.proto": other})
    with pytest.raises(InvalidSchema, match=r"other\.proto"):
        ProtobufFormat().parse(text, {})
    ProtobufFormat().parse(
        'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp t = 1; }',
        {},
    )


@pytest.mark.parametrize("text", ["message", "message M { int32 a = 1; int32 b = 1; }", "{}"])
def test_what_is_no_schema(text: str) -> None:
    with pytest.raises(InvalidSchema):
        ProtobufFormat().parse(full(text) if text != "{}" else text, {})


def test_an_import_stays_in_its_directory() -> None:
    with pytest.raises(InvalidSchema):
        ProtobufFormat().parse(full(A), {"../../etc/x.proto": full(A)})


def test_comments_and_layout_do_not_count() -> None:
    parse = ProtobufFormat().parse
    plain = parse('syntax = "proto3"; message M { int32 a = 1; }', {}).canonical()
    assert (
        parse(
            '// hello\nsyntax = "proto3";\n\nmessage M {\n/* x */ int32 a = 1;\n}', {}
        ).canonical()
        == plain
    )
    assert parse(plain, {}).canonical() == plain


def test_normalisation_ignores_order_and_keeps_options_of_the_users_own() -> None:
    parse = ProtobufFormat().parse
    one = parse(full("message M { string b = 2; int32 a = 1; } message L {}"), {}).normalized()
    assert (
        one == parse(full("message M { int32 a = 1; string b = 2; } message L {}"), {}).normalized()
    )
    # Messages keep their order, because the wire format numbers them.
    assert one.index("message M") < one.index("message L")
    assert parse(one, {}).normalized() == one
    tagged = (
        'syntax = "proto3"; import "confluent/meta.proto"; '
        'message M { string a = 1 [(confluent.field_meta).tags = "PII"]; }'
    )
    assert "PII" in parse(tagged, {}).normalized()
