"""Decoders of the key and the value column: bytes as they are, text, JSON, or values of a registry's schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.pipelines.columns.value_formats import check_type, decode_column
from headrace.pipelines.options.known_options import OptionError
from headrace.pipelines.options.schema_options import FormatOptions, RegistryOptions
from headrace.schemas.columns.decoded import Decoded, Undecodable
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.wire_format import SchemaReference

if TYPE_CHECKING:
    from headrace.schemas.columns.codec import PinnedSchema, ValueDecoder

DecodeColumn = Callable[[pa.Array, pa.Array | None], Decoded]

_KINDS: Final = {
    "binary": (pt.is_binary, "binary"),
    "string": (pt.is_string, "string"),
    "json": (pt.is_struct, "a struct"),
}


def column_decoder(
    column: pa.Field,
    wanted: FormatOptions,
    registry: RegistryOptions | None,
    pinned: Mapping[str, PinnedSchema],
) -> DecodeColumn:
    """Decodes a column: values, and the values of their schema headers, in. Raises OptionError where the type cannot be had."""
    if wanted.has_registry:
        assert registry is not None
        return _schema_decoder(column, wanted, registry, pinned[column.name])
    fits, kind = _KINDS[wanted.format]
    if not fits(column.type):
        name = column.name
        raise OptionError(
            f"the column {name} is {kind} with {name}Format={wanted.format}, not {column.type}"
        )
    if wanted.format == "json":
        check_type(column, column.name)
    return lambda values, _headers: decode_column(values, column.type)


def _schema_decoder(
    column: pa.Field, wanted: FormatOptions, registry: RegistryOptions, reader: PinnedSchema
) -> DecodeColumn:
    # Only queries with a registry need what its client and the codecs need.
    from headrace.pipelines.columns.schemas import pinned_schemas
    from headrace.schemas.columns.codecs import codec_of
    from headrace.schemas.columns.framed_decoder import FramedDecoder

    codec = codec_of(wanted.format)
    try:
        codec.decoder(
            reader, reader, column.type
        )  # a type that cannot be had is told before anything is read
    except InvalidSchema as error:
        raise OptionError(f"the column {column.name}: {error}") from error
    schemas = pinned_schemas(wanted, registry)

    def decoder_for(reference: SchemaReference) -> ValueDecoder:
        try:
            return codec.decoder(schemas.of_writer(reference), reader, column.type)
        except InvalidSchema as error:
            raise Undecodable(f"the schema {reference} cannot be used: {error}") from error

    return FramedDecoder(column.type, decoder_for).decode
