"""Formats of keys and values on the command line: the names that users give them, and Java's classes that mean the same."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from headrace.cli.records.message_formatter import DESERIALIZERS
from headrace.cli.shell.command_line import Failure, ToolParser

SCHEMA_FORMATS: Final = ("avro", "protobuf", "jsonschema")
# By format, the class of Java's deserializer that shows the same.
PLAIN_FORMATS: Final = {
    "string": "StringDeserializer",
    "bytes": "ByteArrayDeserializer",
    "short": "ShortDeserializer",
    "integer": "IntegerDeserializer",
    "long": "LongDeserializer",
    "float": "FloatDeserializer",
    "double": "DoubleDeserializer",
    "boolean": "BooleanDeserializer",
    "uuid": "UUIDDeserializer",
}
FORMATS: Final = (*PLAIN_FORMATS, "json", *SCHEMA_FORMATS)
# Confluent's classes for --line-reader and --formatter, without their packages.
_CONFLUENT: Final = {
    "AvroMessageReader": "avro",
    "JsonSchemaMessageReader": "jsonschema",
    "ProtobufMessageReader": "protobuf",
    "AvroMessageFormatter": "avro",
    "JsonSchemaMessageFormatter": "jsonschema",
    "ProtobufMessageFormatter": "protobuf",
}
_USUAL_REGISTRY: Final = "http://localhost:8081"


class Formats(NamedTuple):
    """The formats of a topic's keys and values, and where their schemas are."""

    key: str
    value: str
    registry_url: str

    @property
    def has_schemas(self) -> bool:
        """Whether a registry is needed."""
        return self.key in SCHEMA_FORMATS or self.value in SCHEMA_FORMATS


def default_registry() -> str:
    """The registry of the environment, else this machine's."""
    return os.environ.get("HEADRACE_SCHEMA_REGISTRY", _USUAL_REGISTRY)


def add_format_options(parser: ToolParser) -> None:
    """--key-format, --value-format and --schema-registry."""
    names = ", ".join(FORMATS)
    parser.value("value-format", f"what values are: {names}", choices=FORMATS, metavar="FORMAT")
    parser.value("key-format", "what keys are: the same", choices=FORMATS, metavar="FORMAT")
    parser.value(
        "schema-registry",
        "the schema registry of avro, protobuf and jsonschema"
        f" (HEADRACE_SCHEMA_REGISTRY; now {default_registry()})",
        metavar="URL",
    )


def confluent_format(class_name: str) -> str:
    """The format that a class of Confluent's stands for, or nothing."""
    return _CONFLUENT.get(class_name.rpartition(".")[2], "")


def chosen_formats(
    options: argparse.Namespace, properties: Mapping[str, str], *, confluent: str, key_class: str
) -> Formats:
    """The formats of a run.

    `confluent` is the format that Confluent's reader or formatter stands for: it is that of values, and of keys where `key_class`, a
    property such as key.serializer, names no other. Raises Failure.
    """
    key = options.key_format or _plain_format(properties.get(key_class, "")) or confluent
    found = Formats(
        key=key or "string",
        value=options.value_format or confluent or "string",
        registry_url=options.schema_registry or properties.get("schema.registry.url", ""),
    )
    if not found.registry_url and found.has_schemas:
        return found._replace(registry_url=default_registry())
    return found


def _plain_format(class_name: str) -> str:
    """The format of one of Kafka's own serializers or deserializers."""
    if not class_name:
        return ""
    wanted = class_name.rpartition(".")[2].replace("Deserializer", "Serializer")
    for name, deserializer in PLAIN_FORMATS.items():
        if wanted == deserializer.replace("Deserializer", "Serializer"):
            return name
    if wanted in ("BytesSerializer", "ByteBufferSerializer"):
        return "bytes"
    for name, language in (
        ("Avro", "avro"),
        ("JsonSchema", "jsonschema"),
        ("Protobuf", "protobuf"),
    ):
        if wanted == f"Kafka{name}Serializer":
            return language
    raise Failure(
        f"the class {class_name} is not known",
        why="Java classes cannot be loaded here",
        hint=f"one of {', '.join(DESERIALIZERS)}, or --key-format",
    )
