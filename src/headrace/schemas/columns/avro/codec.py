"""The codec of Avro: schemas pinned as one self-contained text, decoders and encoders of it. Pure.

A value whose schema is just `bytes` has no Avro around it: Java's serializer writes the bytes as they are, and so they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import pyarrow as pa

from headrace.schemas.columns.avro.decoder import AvroDecoder
from headrace.schemas.columns.avro.derivation import avro_schema_of
from headrace.schemas.columns.avro.encoder import AvroEncoder
from headrace.schemas.columns.avro.types import arrow_type, narrowed
from headrace.schemas.columns.byte_columns import ByteSpans, joined, lengths, varint_column, zigzag
from headrace.schemas.columns.codec import PinnedSchema, ValueDecoder, ValueEncoder
from headrace.schemas.columns.decoded import Decoded
from headrace.schemas.formats.avro.parser import parse_avro
from headrace.schemas.formats.avro.printer import compact, schema_text
from headrace.schemas.formats.avro.types import Type
from headrace.schemas.registry_client import AVRO, NamedSchema, Schema

_KEPT: Final = 256


class AvroCodec:
    """The codec; it keeps nothing but what it has parsed."""

    schema_type = AVRO

    def pin(
        self, schema: Schema, dependencies: Sequence[NamedSchema] = (), *, message: str = ""
    ) -> PinnedSchema:
        root, _ = parse_avro(schema.text, [each.schema.text for each in dependencies])
        return PinnedSchema(AVRO, schema_text(root))

    def column_type(self, schema: PinnedSchema) -> pa.DataType:
        return arrow_type(_parsed(schema.text))

    def decoder(
        self, writer: PinnedSchema, reader: PinnedSchema, wanted: pa.DataType
    ) -> ValueDecoder:
        return _decoder(writer.text, reader.text, wanted)

    def encoder(self, schema: PinnedSchema, column: pa.DataType) -> ValueEncoder:
        return AvroEncoder(_parsed(schema.text), column)

    def derived(self, column: pa.DataType, name: str) -> Schema:
        return Schema(compact(avro_schema_of(column, name)))

    def record_name(self, schema: PinnedSchema) -> str:
        return _parsed(schema.text).full_name


@lru_cache(_KEPT)
def _parsed(text: str) -> Type:
    return parse_avro(text)[0]


@lru_cache(_KEPT)
def _decoder(writer: str, reader: str, wanted: pa.DataType) -> ValueDecoder:
    wanted_schema = narrowed(_parsed(reader), wanted, "value")
    written = _parsed(writer)
    decoder = AvroDecoder(written, wanted_schema)
    return _RawBytes(decoder) if written.kind == "bytes" else decoder


class _RawBytes:
    """Reads bytes that have no length in front: they get one, and are read as Avro."""

    def __init__(self, decoder: AvroDecoder) -> None:
        self._decoder = decoder

    def decode(self, payload: ByteSpans, header_rest: bytes | None = None) -> Decoded:
        column = payload.column()
        return self._decoder.decode(
            ByteSpans.of(joined([varint_column(zigzag(lengths(column))), column]))
        )
