"""The codecs by the names that users give them."""

from __future__ import annotations

from headrace.schemas.columns.codec import Codec


def codec_of(name: str) -> Codec:
    """The codec of a format. The libraries of the others are not loaded."""
    match name:
        case "avro":
            from headrace.schemas.columns.avro.codec import AvroCodec

            return AvroCodec()
        case "protobuf":
            from headrace.schemas.columns.protobuf.codec import ProtobufCodec

            return ProtobufCodec()
        case _:
            assert name == "jsonschema", name
            from headrace.schemas.columns.json.codec import JsonSchemaCodec

            return JsonSchemaCodec()
