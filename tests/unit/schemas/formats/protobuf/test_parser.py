"""`.proto` text as a tree: every statement, and words that are keywords elsewhere."""

import pytest

from headrace.schemas.formats.protobuf.parser import parse_proto
from headrace.schemas.formats.protobuf.proto_file import (
    Constant,
    Field,
    Message,
    Option,
    Range,
    Reserved,
    Rpc,
    Word,
)
from headrace.schemas.formats.schema_format import InvalidSchema


def message(body: str) -> Message:
    (found,) = parse_proto(f"message M {{ {body} }}").messages
    return found


def test_the_head_of_a_file() -> None:
    file = parse_proto(
        '// a comment\nsyntax = "proto3"; package a.b; /* another */ import "x.proto"; import public "y.proto"; '
        'import weak "z.proto"; option java_package = "j";'
    )
    assert (file.syntax, file.package) == ("proto3", "a.b")
    assert (file.imports, file.public_imports, file.weak_imports) == (
        ["x.proto"],
        ["y.proto"],
        ["z.proto"],
    )
    assert file.options == [Option("java_package", "j")]


def test_fields() -> None:
    found = message(
        "int32 a = 1; optional .p.N b = 0x2; repeated string c = 03 [deprecated = true]; map<string, N> d = 4;"
    )
    assert found.fields == [
        Field(None, "int32", "a", 1),
        Field("optional", ".p.N", "b", 2),
        Field("repeated", "string", "c", 3, [Option("deprecated", Word("true"))]),
        Field(None, "map<string, N>", "d", 4),
    ]


def test_keywords_are_names_too() -> None:
    names = [
        field.name
        for field in message(
            "int32 message = 1; string optional = 2; message.N reserved = 3; enum option = 4;"
        ).fields
    ]
    assert names == ["message", "optional", "reserved", "option"]


def test_what_a_message_holds() -> None:
    found = message(
        "reserved 1, 3 to 5, 7 to max; reserved 'a', \"b\"; extensions 100 to 199; option deprecated = true; "
        "oneof o { int32 x = 11; } message N {} enum E { A = 0; B = -1; } extend Q { int32 y = 12; } "
        "optional group G = 13 { int32 z = 14; }"
    )
    assert found.reserved == [
        Reserved([1, Range(3, 5), Range(7, 536_870_911)]),
        Reserved(["a", "b"]),
    ]
    assert found.extensions[0].values == [Range(100, 199)]
    assert found.oneofs[0].fields == [Field(None, "int32", "x", 11)]
    assert found.messages == [Message("N")]
    assert found.enums[0].constants == [Constant("A", 0), Constant("B", -1)]
    assert (found.extends[0].name, found.groups[0].name) == ("Q", "G")


def test_options_have_values_of_every_form() -> None:
    (field,) = message(
        "string a = 1 [(x.y).z = 'q\\n' \"r\", default = 'd', (l) = [1, -2], (m) = { k: 1 l { n: 'o' } [e.f]: 2 }];"
    ).fields
    assert field.options == [
        Option("x.y", "q\nr", is_extension=True, path=["z"]),
        Option("l", [Word("1"), Word("-2")], is_extension=True),
        Option("m", {"k": Word("1"), "l": {"n": "o"}, "[e.f]": Word("2")}, is_extension=True),
        Option("default", "d"),
    ]


def test_services() -> None:
    (service,) = parse_proto(
        "service S { rpc A (stream M) returns (.p.N); rpc B (M) returns (stream N) { option deprecated = true; } }"
    ).services
    assert service.rpcs == [
        Rpc("A", "M", ".p.N", streams_request=True),
        Rpc("B", "M", "N", streams_answer=True, options=[Option("deprecated", Word("true"))]),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "message",
        "message M {",
        "message M { int32 a = x; }",
        "message M { int32 a 1; }",
        "hello",
        "import x;",
        "service S { message M {} }",
        "message M { ! }",
        "message M {" * 200 + "}" * 200,
    ],
)
def test_what_is_no_file(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_proto(text)
