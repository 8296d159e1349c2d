"""Documents that are valid by a JSON Schema, and those that are not."""

import msgspec
import pytest

from headrace.rest.payloads.json_schema_data import JsonSchemaCodec, Validators
from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from headrace.schemas.wire_format import Framed

SCHEMA = '{"title":"Order","type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'


def test_a_valid_document_is_written_without_white_space() -> None:
    codec = JsonSchemaCodec(SCHEMA, validation=Validators())
    assert codec.record_name == "Order"
    assert codec.encode(b'{ "n" : 1, "m": 12345678901234567890 }') == (
        b'{"n":1,"m":12345678901234567890}'
    )


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"n":"x"}', "#/n: "),
        (b"{}", "#: "),
        (b"[]", "#: "),
        (b"{", "truncated"),
        (b'"\xff"', "utf-8"),
    ],
)
def test_a_document_that_is_not_valid_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(NotOfSchema, match=why):
        JsonSchemaCodec(SCHEMA, validation=Validators()).encode(data)


def test_a_document_is_shown_as_it_was_written() -> None:
    codec = JsonSchemaCodec("true", validation=Validators())
    assert codec.record_name is None
    assert msgspec.json.encode([codec.decode(Framed(1, b'{"n": 1.50}'))]) == b'[{"n": 1.50}]'
    with pytest.raises(NotOfSchema, match="not JSON"):
        codec.decode(Framed(1, b"{"))


def test_references_are_found_by_name() -> None:
    codec = JsonSchemaCodec(
        '{"type":"object","properties":{"o":{"$ref":"other.json"}}}',
        {"other.json": '{"type":"string"}'},
        validation=Validators(),
    )
    assert codec.encode(b'{"o":"x"}') == b'{"o":"x"}'
    with pytest.raises(NotOfSchema, match="#/o"):
        codec.encode(b'{"o":1}')


@pytest.mark.parametrize("text", ["", "[]", '{"type":"nope"}', '{"$ref":"missing.json"}'])
def test_a_text_that_cannot_be_used(text: str) -> None:
    with pytest.raises(UnusableSchema):
        JsonSchemaCodec(text, validation=Validators())
