"""The codec of Protobuf: schemas pinned as compiled descriptors, decoders and encoders of one message type. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from headrace.schemas.columns.codec import PinnedSchema, ValueDecoder, ValueEncoder
from headrace.schemas.columns.protobuf.decoder import ProtobufDecoder
from headrace.schemas.columns.protobuf.derivation import protobuf_schema_of
from headrace.schemas.columns.protobuf.encoder import ProtobufEncoder
from headrace.schemas.columns.protobuf.messages import message_type, pin_protobuf
from headrace.schemas.columns.protobuf.types import column_type
from headrace.schemas.registry_client import PROTOBUF, NamedSchema, Schema

_KEPT: Final = 256


class ProtobufCodec:
    """The codec; it keeps nothing but what it has compiled."""

    schema_type = PROTOBUF

    def pin(
        self, schema: Schema, dependencies: Sequence[NamedSchema] = (), *, message: str = ""
    ) -> PinnedSchema:
        return _pinned(schema, tuple(dependencies), message)

    def column_type(self, schema: PinnedSchema) -> pa.DataType:
        return column_type(message_type(schema))

    def decoder(
        self, writer: PinnedSchema, reader: PinnedSchema, wanted: pa.DataType
    ) -> ValueDecoder:
        return _decoder(writer, reader, wanted)

    def encoder(self, schema: PinnedSchema, column: pa.DataType) -> ValueEncoder:
        return ProtobufEncoder(schema, column)

    def derived(self, column: pa.DataType, name: str) -> Schema:
        return Schema(protobuf_schema_of(column, name), PROTOBUF)

    def record_name(self, schema: PinnedSchema) -> str:
        return schema.message


@lru_cache(_KEPT)
def _pinned(schema: Schema, dependencies: tuple[NamedSchema, ...], message: str) -> PinnedSchema:
    """Compiled once: protoc takes milliseconds."""
    return pin_protobuf(schema, dependencies, message)


@lru_cache(_KEPT)
def _decoder(writer: PinnedSchema, reader: PinnedSchema, wanted: pa.DataType) -> ValueDecoder:
    return ProtobufDecoder(writer, reader, wanted)
