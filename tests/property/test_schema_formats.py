"""Schema languages: whatever text comes is a schema or is refused; canonical texts are stable; a schema reads itself."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headrace.registry.judging.judge import FORMATS
from headrace.schemas.formats.protobuf.parser import parse_proto
from headrace.schemas.formats.protobuf.printer import print_proto
from headrace.schemas.formats.schema_format import InvalidSchema, ParsedSchema

Json = Any

JSON_KEYWORDS = (
    "type", "properties", "items", "$ref", "$id", "$schema", "definitions", "required", "enum", "const", "allOf",
    "oneOf", "anyOf", "not", "if", "then", "dependencies", "additionalProperties", "patternProperties", "prefixItems",
    "unevaluatedItems", "minContains", "contains", "maxLength", "pattern", "multipleOf", "maximum", "exclusiveMaximum",
    "format", "default", "confluent:tags", "connect.type", "dependentRequired", "dependentSchemas", "a", "b",
)  # fmt: skip
JSON_WORDS = (
    "object", "array", "string", "number", "integer", "null", "#", "#/definitions/a", "#/properties/b", "a", "(",
    "https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-04/schema#",
)  # fmt: skip
AVRO_KEYWORDS = (
    "type", "name", "namespace", "fields", "items", "values", "symbols", "size", "default", "aliases", "order", "doc",
    "logicalType", "precision", "scale", "confluent:tags", "x",
)  # fmt: skip
AVRO_WORDS = (
    "record", "enum", "fixed", "array", "map", "int", "long", "string", "bytes", "null", "double", "R", "n.S", "",
    "decimal", "uuid", "a b", "ascending",
)  # fmt: skip
PROTO_WORDS = (
    "message", "enum", "oneof", "M", "N", "{", "}", "{", "}", ";", ";", "=", "1", "2", "0", "-1", "int32", "string",
    "repeated", "optional", "map", "<", ">", ",", "[", "]", "(", ")", "option", "reserved", "to", "max", "extend",
    "extensions", "group", '"x"', "'y'", "service", "rpc", "returns", "stream", "package", "p.q", "import", "syntax",
    "deprecated", "true", "default", "json_name", "(confluent.field_meta)", "tags", ":", "inf", "0x1F",
)  # fmt: skip


def documents(keywords: tuple[str, ...], words: tuple[str, ...]) -> st.SearchStrategy[Json]:
    leaves = st.one_of(
        st.sampled_from(words),
        st.sampled_from([None, True, False, 0, 1, -1, 0.5, 1e400, 2**70]),
        st.text(max_size=3),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(keywords), inner, max_size=5),
        ),
        max_leaves=12,
    )


def check(schema_type: str, text: str) -> ParsedSchema | None:
    language = FORMATS[schema_type]
    try:
        schema = language.parse(text, {})
    except InvalidSchema:
        return None
    canonical = schema.canonical()
    again = language.parse(canonical, {}, is_new=False)
    assert again.canonical() == canonical
    normalized = schema.normalized()
    assert language.parse(normalized, {}, is_new=False).normalized() == normalized
    assert not schema.can_read(again)
    schema.tags()
    return schema


@given(st.text(max_size=50))
def test_any_text_is_a_schema_or_is_refused(text: str) -> None:
    for schema_type in ("AVRO", "JSON"):
        check(schema_type, text)


@given(documents(AVRO_KEYWORDS, AVRO_WORDS))
@settings(max_examples=400)
def test_any_document_is_an_avro_schema_or_is_refused(document: Json) -> None:
    check("AVRO", json.dumps(document))


@given(
    st.lists(
        st.tuples(st.text("ab", min_size=1, max_size=2), documents(AVRO_KEYWORDS, AVRO_WORDS)),
        max_size=3,
    )
)
@settings(max_examples=300)
def test_any_record_is_an_avro_schema_or_is_refused(fields: list[tuple[str, Json]]) -> None:
    written = [{"name": name, "type": kind} for name, kind in fields]
    check("AVRO", json.dumps({"type": "record", "name": "R", "fields": written}))


@given(documents(JSON_KEYWORDS, JSON_WORDS))
@example({"$ref": 7})
@example({"$ref": "#/$ref"})
@settings(max_examples=600)
def test_any_document_is_a_json_schema_or_is_refused(document: Json) -> None:
    check("JSON", json.dumps(document))


@given(
    st.dictionaries(st.sampled_from("ab"), documents(JSON_KEYWORDS, JSON_WORDS), max_size=2),
    st.dictionaries(st.sampled_from("ab"), documents(JSON_KEYWORDS, JSON_WORDS), max_size=2),
)
@settings(max_examples=300)
def test_any_two_json_schemas_can_be_compared(one: Json, other: Json) -> None:
    parse = FORMATS["JSON"].parse
    try:
        schemas = [
            parse(json.dumps({"type": "object", "properties": each, "definitions": {"a": {}}}), {})
            for each in (one, other)
        ]
    except InvalidSchema:
        return
    schemas[0].can_read(schemas[1])
    schemas[1].can_read(schemas[0], is_lenient=True)


@given(st.lists(st.sampled_from(PROTO_WORDS), max_size=30))
@settings(max_examples=1000)
def test_any_words_are_a_proto_file_or_are_refused(words: list[str]) -> None:
    try:
        file = parse_proto(" ".join(words))
    except InvalidSchema:
        return
    text = print_proto(file)
    assert print_proto(parse_proto(text)) == text


@given(st.text(max_size=60))
@settings(max_examples=300)
def test_any_text_is_a_proto_file_or_is_refused(text: str) -> None:
    for each in (text, f"message M {{ {text} }}", f'option a = "{text}";'):
        try:
            parse_proto(each)
        except InvalidSchema:
            continue
