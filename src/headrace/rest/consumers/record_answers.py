"""Records that a consumer read, as JSON in the format of its instance. Blocking where the registry must be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headrace.rest import errors
from headrace.rest.consumers.progress import ReadRecord
from headrace.rest.payloads import plain
from headrace.rest.payloads.formats import Format
from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from headrace.rest.schemas.schema_choice import ReadySchema
from headrace.schemas.wire_format import NotFramed, SchemaReference, parse, schema_header

Json = Any


class RecordAnswer(msgspec.Struct):
    """One record in an answer."""

    topic: str
    key: Any
    value: Any
    partition: int
    offset: int


class RecordDecoder:
    """Decodes keys and values. `schema_of` finds the schema that a payload refers to; None without a registry."""

    def __init__(
        self, kind: Format, schema_of: Callable[[SchemaReference], ReadySchema] | None
    ) -> None:
        self._format = kind
        self._schema_of = schema_of

    def decode(self, record: ReadRecord) -> RecordAnswer:
        """Raises RestError, which names the record, where it is not of the instance's format or its schema is not there."""
        place = f"partition {record.topic}-{record.partition} at offset {record.offset}"
        try:
            key = self._decode(record.key, record, is_key=True)
            value = self._decode(record.value, record, is_key=False)
        except (NotFramed, NotOfSchema, UnusableSchema, ValueError, RecursionError) as wrong:
            raise errors.kafka_failed(
                f"Error deserializing key/value for {place}. "
                f"If needed, please seek past the record to continue consumption. {wrong}"
            ) from wrong
        except errors.RestError as refused:
            message = f"{refused.message} (the record is in {place})"
            raise errors.RestError(refused.status, refused.code, message) from refused
        return RecordAnswer(record.topic, key, value, record.partition, record.offset)

    def _decode(self, data: bytes | None, record: ReadRecord, *, is_key: bool) -> Json:
        if data is None:
            return None
        if not self._format.has_schema:
            return plain.decode(self._format, data)
        if self._schema_of is None:
            raise errors.invalid_payload("Schema Registry must be configured when using schemas.")
        framed = parse(data, schema_header(record.headers, is_key=is_key))
        ready = self._schema_of(framed.schema)
        if ready.format is not self._format:
            raise NotOfSchema(f"its schema is {ready.format.value}, not {self._format.value}")
        return ready.codec.decode(framed)
