"""`.proto` files in order, every type by its full name."""

import pytest

from headrace.schemas.formats.protobuf.language import ProtobufFormat


def normalized(body: str, references: dict[str, str] | None = None) -> str:
    return ProtobufFormat().parse(f'syntax = "proto3"; {body}', references or {}).normalized()


def test_fields_are_in_the_order_of_their_tags() -> None:
    text = normalized(
        "message M { string b = 2; int32 a = 1; reserved 9, 5 to 6; reserved 'z', 'y'; }"
    )
    assert text.index("int32 a") < text.index("string b")
    assert [line.strip() for line in text.splitlines() if "reserved" in line] == [
        "reserved 5 to 6;",
        "reserved 9;",
        'reserved "y";',
        'reserved "z";',
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [("N", ".p.M.N"), ("M.N", ".p.M.N"), ("p.N", ".p.N"), (".p.N", ".p.N"), ("O", ".p.O")],
)
def test_a_type_has_its_full_name(name: str, meant: str) -> None:
    body = f"package p; message M {{ message N {{}} {name} a = 1; }} message N {{}} message O {{}}"
    assert f"{meant} a = 1;" in normalized(body)


def test_maps_and_calls_have_full_names() -> None:
    text = normalized(
        "package p; message M { map<string, M> a = 1; } service S { rpc R (M) returns (M); }"
    )
    assert "map<string, .p.M> a = 1;" in text
    assert "rpc R (.p.M) returns (.p.M);" in text


def test_imports_are_sorted_and_named_once() -> None:
    other = 'syntax = "proto3"; package q;'
    references = {"a.proto": other, "b.proto": other}
    text = normalized('import "b.proto"; import "a.proto"; message M {}', references)
    assert text.index("a.proto") < text.index("b.proto")


def test_the_settings_of_one_option_are_one_option() -> None:
    text = normalized(
        'import "confluent/meta.proto"; message M { string a = 1 [(confluent.field_meta).doc = "d", '
        '(confluent.field_meta).tags = "PII"]; }'
    )
    assert text.count("field_meta") == 1
    assert text.index('doc: "d"') < text.index('tags: "PII"')


@pytest.mark.parametrize(
    ("written", "number"), [("0x10", "16"), ("010", "8"), ("1.50", "1.5"), ("1e2", "100")]
)
def test_numbers_have_one_form(written: str, number: str) -> None:
    options = "extend google.protobuf.FieldOptions { double d = 50000; }"
    body = f'import "google/protobuf/descriptor.proto"; {options} message M {{ int32 a = 1 [(d) = {written}]; }}'
    assert f"(d) = {number}]" in normalized(body)


def test_what_is_normalised_stays() -> None:
    once = normalized("package p; message M { N b = 2; int32 a = 1; } message N { M m = 1; }")
    assert ProtobufFormat().parse(once, {}).normalized() == once
