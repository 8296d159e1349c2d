"""The codec of JSON Schema: values are JSON, whatever schema wrote them, and the reader's schema says which columns they are. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.codec import PinnedSchema, ValueDecoder, ValueEncoder
from headrace.schemas.columns.decoded import Decoded
from headrace.schemas.columns.json.columns import check_json_type, decode_json
from headrace.schemas.columns.json.derivation import json_schema_of
from headrace.schemas.columns.json.encoder import JsonSchemaEncoder
from headrace.schemas.columns.json.types import column_type
from headrace.schemas.columns.json.values import JsonRules
from headrace.schemas.formats.json_schema.language import JsonSchemaFormat
from headrace.schemas.formats.json_schema.references import Json
from headrace.schemas.registry_client import JSON_SCHEMA, NamedSchema, Schema


class JsonSchemaCodec:
    """The codec; it keeps nothing."""

    schema_type = JSON_SCHEMA

    def pin(
        self, schema: Schema, dependencies: Sequence[NamedSchema] = (), *, message: str = ""
    ) -> PinnedSchema:
        others = {each.name: each.schema.text for each in dependencies}
        JsonSchemaFormat().parse(schema.text, others, is_new=False)  # is it one?
        documents = {name: json.loads(text) for name, text in others.items()}
        pinned = {"schema": json.loads(schema.text), "references": documents}
        return PinnedSchema(JSON_SCHEMA, json.dumps(pinned))

    def column_type(self, schema: PinnedSchema) -> pa.DataType:
        return column_type(*_documents(schema))

    def decoder(
        self, writer: PinnedSchema, reader: PinnedSchema, wanted: pa.DataType
    ) -> ValueDecoder:
        check_json_type(pa.field("value", wanted), "value")
        return _JsonDecoder(wanted)

    def encoder(self, schema: PinnedSchema, column: pa.DataType) -> ValueEncoder:
        return JsonSchemaEncoder(*_documents(schema), column)

    def derived(self, column: pa.DataType, name: str) -> Schema:
        return Schema(json.dumps(json_schema_of(column, name)), JSON_SCHEMA)

    def record_name(self, schema: PinnedSchema) -> str:
        """The title, as Confluent's serializer has it."""
        document, _ = _documents(schema)
        title = document.get("title") if isinstance(document, dict) else None
        return title if isinstance(title, str) else ""


def _documents(schema: PinnedSchema) -> tuple[Json, dict[str, Json]]:
    pinned = json.loads(schema.text)
    return pinned["schema"], pinned["references"]


class _JsonDecoder:
    def __init__(self, wanted: pa.DataType) -> None:
        self._wanted = wanted

    def decode(self, payload: ByteSpans, header_rest: bytes | None = None) -> Decoded:
        return decode_json(payload.column(), self._wanted, JsonRules.JSON_SCHEMA)
