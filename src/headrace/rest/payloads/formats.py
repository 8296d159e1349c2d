"""Names of the formats in which keys and values are embedded in JSON. Pure."""

from __future__ import annotations

from enum import Enum
from typing import Final

from headrace.schemas import registry_client


class Format(Enum):
    """How a key or value is written in JSON; the value is Confluent's name."""

    BINARY = "BINARY"
    JSON = "JSON"
    STRING = "STRING"
    AVRO = "AVRO"
    JSONSCHEMA = "JSONSCHEMA"
    PROTOBUF = "PROTOBUF"

    has_schema: bool  # whether keys and values are written with a schema of a registry

    def __init__(self, name: str) -> None:
        # An attribute, not a property with a table: it is asked for several times for each record.
        self.has_schema = name in ("AVRO", "JSONSCHEMA", "PROTOBUF")


SCHEMA_TYPES: Final = {
    Format.AVRO: registry_client.AVRO,
    Format.JSONSCHEMA: registry_client.JSON_SCHEMA,
    Format.PROTOBUF: registry_client.PROTOBUF,
}
OF_SCHEMA_TYPE: Final = {name: each for each, name in SCHEMA_TYPES.items()}
