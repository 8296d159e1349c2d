"""What a schema language must offer so that its values can be columns: one codec for each of Avro, Protobuf and JSON Schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import pyarrow as pa

from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.decoded import Decoded
from headrace.schemas.registry_client import NamedSchema, Schema


class PinnedSchema(NamedTuple):
    """A schema with all that it refers to inside, in a text that its codec understands: it can be sent to tasks."""

    schema_type: str
    text: str
    message: str = ""  # of Protobuf: the full name of the message type


class ValueDecoder(Protocol):
    """Reads values that were written with one schema."""

    def decode(self, payload: ByteSpans, header_rest: bytes | None = None) -> Decoded:
        """The values of these bytes, which stood behind a reference to the schema.

        `header_rest` are the bytes behind the reference where that stood in a record header.
        """
        ...


class ValueEncoder(Protocol):
    """Writes values with one schema."""

    def encode(self, column: pa.Array) -> pa.Array:
        """The bytes of each value, as they stand behind a reference to the schema; null for null. Raises Unencodable."""
        ...


class Codec(Protocol):
    """A schema language. All calls raise InvalidSchema where a schema is none, or cannot be a column."""

    schema_type: str

    def pin(
        self, schema: Schema, dependencies: Sequence[NamedSchema] = (), *, message: str = ""
    ) -> PinnedSchema:
        """The schema with its dependencies inside. `message` chooses a Protobuf message; the first one otherwise."""
        ...

    def column_type(self, schema: PinnedSchema) -> pa.DataType:
        """The type of a column of its values."""
        ...

    def decoder(
        self, writer: PinnedSchema, reader: PinnedSchema, wanted: pa.DataType
    ) -> ValueDecoder:
        """Reads what `writer` describes as `reader` describes it, in columns of the wanted type."""
        ...

    def encoder(self, schema: PinnedSchema, column: pa.DataType) -> ValueEncoder:
        """Writes columns of this type with the schema."""
        ...

    def derived(self, column: pa.DataType, name: str) -> Schema:
        """A schema for columns of this type, which nobody wrote one for. `name` is the record's."""
        ...

    def record_name(self, schema: PinnedSchema) -> str:
        """The full name of what the schema describes, for subjects that are named after records; empty if it has none."""
        ...
