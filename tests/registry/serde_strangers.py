"""Serializers that we did not write, each in its own language: Confluent's for Java and Python, kafkajs', franz-go's.

A stranger in another process answers one line of JSON for each line that it gets:

    {"op": "write", "subject": …, "type": "AVRO", "schema": …, "value": …}   ->  {"bytes": base64}
    {"op": "read", "subject": …, "type": "AVRO", "schema": …, "bytes": …}    ->  {"value": …}

and {"error": …} where it cannot. Writing registers the schema. The schema of "read" is the reader's; without one, values are read
with the schema that they were written with.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.json_format import MessageToDict, ParseDict

from headrace.schemas.columns.protobuf.messages import message_class, message_type, pin_protobuf
from headrace.schemas.registry_client import Schema
from tests.support.tools import STRANGERS, require

Json = Any
ANSWER_S = 120
ALL = ("python", "js", "go", "java")
# The others are installed from three registries and compiled, which takes minutes: HEADRACE_STRANGERS=1 asks for them.
NAMES = ALL if os.environ.get("HEADRACE_STRANGERS") == "1" else ALL[:1]
# kafkajs' client writes Protobuf without message indexes, which is not Confluent's format, and reads the others'. There is no Java
# serializer for JSON Schema in the jars.
_ABLE_WRITERS = {"AVRO": ALL, "JSON": ("python", "js", "go"), "PROTOBUF": ("python", "go", "java")}
_ABLE_READERS = {"AVRO": ALL, "JSON": ("python", "js", "go"), "PROTOBUF": ALL}
WRITERS = {kind: [name for name in able if name in NAMES] for kind, able in _ABLE_WRITERS.items()}
READERS = {kind: [name for name in able if name in NAMES] for kind, able in _ABLE_READERS.items()}

AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)
JSON_SCHEMA = json.dumps(
    {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Order",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["id"],
        "additionalProperties": False,
    }
)
PROTO = """syntax = "proto3";
package shop;
message Order {
  int32 id = 1;
  string name = 2;
  repeated string tags = 3;
}
"""
SCHEMAS = {"AVRO": AVRO, "JSON": JSON_SCHEMA, "PROTOBUF": PROTO}
VALUES: dict[str, dict[str, Any]] = {
    "AVRO": {"id": 2**40, "name": "é", "price": 1.5, "tags": ["a", "b"], "note": "n"},
    "JSON": {"id": 7, "name": "é", "tags": ["a"]},
    "PROTOBUF": {"id": 7, "name": "é", "tags": ["a"]},
}
DEPRECATED = {"use.deprecated.format": False}


class StrangerRefused(Exception):
    """A stranger says that it cannot."""


class Stranger(Protocol):
    """Writes and reads values with schemas."""

    def write(self, subject: str, kind: str, schema: str, value: Json) -> bytes:
        """The bytes of a value, after the schema was registered. Raises StrangerRefused."""
        ...

    def read(self, subject: str, kind: str, data: bytes, reader: str | None = None) -> Json:
        """The value of bytes. Raises StrangerRefused."""
        ...


class ProcessStranger:
    """A stranger in a process of its own."""

    def __init__(self, words: list[str], log: Path) -> None:
        self._log = log.open("wb")
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )

    def write(self, subject: str, kind: str, schema: str, value: Json) -> bytes:
        found = self._ask(op="write", subject=subject, type=kind, schema=schema, value=value)
        return base64.b64decode(found["bytes"])

    def read(self, subject: str, kind: str, data: bytes, reader: str | None = None) -> Json:
        text = base64.b64encode(data).decode()
        more = {} if reader is None else {"schema": reader}
        return self._ask(op="read", subject=subject, type=kind, bytes=text, **more)["value"]

    def resolve(self, writer: str, reader: str, data: bytes) -> Json:
        """What Avro's own library makes of bytes of one schema with another; only Java's stranger knows it."""
        text = base64.b64encode(data).decode()
        return self._ask(op="resolve", writer=writer, schema=reader, bytes=text)["value"]

    def _ask(self, **question: Json) -> dict[str, Json]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        impatience = threading.Timer(ANSWER_S, self._process.kill)
        impatience.start()
        try:
            for line in self._process.stdout:
                if line.startswith(b"{"):  # Java's libraries print other things, too
                    found: dict[str, Json] = json.loads(line)
                    if "error" in found:
                        raise StrangerRefused(found["error"])
                    return found
        finally:
            impatience.cancel()
        raise AssertionError(f"no answer: {Path(self._log.name).read_text()[-2000:]}")

    def close(self) -> None:
        """End the process. It also ends by itself when nobody can ask any more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._log.close()


class PythonStranger:
    """confluent-kafka's serializers."""

    def __init__(self, url: str) -> None:
        self._url = url

    def write(self, subject: str, kind: str, schema: str, value: Json) -> bytes:
        with SchemaRegistryClient({"url": self._url}) as client:
            try:
                found = self._serializer(client, kind, schema)(
                    *self._value(kind, schema, value, subject)
                )
            except Exception as error:
                raise StrangerRefused(str(error)) from error
        assert found is not None
        return bytes(found)

    @staticmethod
    def _serializer(client: SchemaRegistryClient, kind: str, schema: str) -> Any:
        if kind == "AVRO":
            return AvroSerializer(client, schema)
        if kind == "JSON":
            return JSONSerializer(schema, client)
        return ProtobufSerializer(_message(schema), client, DEPRECATED)

    @staticmethod
    def _value(kind: str, schema: str, value: Json, subject: str) -> tuple[Any, Any]:
        context = SerializationContext(subject.removesuffix("-value"), MessageField.VALUE)
        return (ParseDict(value, _message(schema)()) if kind == "PROTOBUF" else value), context

    def read(self, subject: str, kind: str, data: bytes, reader: str | None = None) -> Json:
        context = SerializationContext(subject.removesuffix("-value"), MessageField.VALUE)
        with SchemaRegistryClient({"url": self._url}) as client:
            try:
                if kind == "AVRO":
                    return AvroDeserializer(client, reader)(data, context)
                if kind == "JSON":
                    return JSONDeserializer(reader, schema_registry_client=client)(data, context)
                assert reader is not None, "Python needs a class of its own"
                found = ProtobufDeserializer(_message(reader), DEPRECATED, client)(data, context)
                return MessageToDict(found)
            except AssertionError:
                raise
            except Exception as error:
                raise StrangerRefused(str(error)) from error


def _message(schema: str) -> Any:
    """A message class, as protoc's Python code would have it."""
    return message_class(message_type(pin_protobuf(Schema(schema, "PROTOBUF"), (), "")))


@contextmanager
def stranger(name: str, url: str, directory: Path) -> Iterator[Stranger]:
    """A stranger by its name; the end of the test where its tools are missing."""
    if name == "python":
        yield PythonStranger(url)
        return
    process = ProcessStranger(_words(name, url), directory / f"{name}.log")
    try:
        yield process
    finally:
        process.close()


def _words(name: str, url: str) -> list[str]:
    if name == "js":
        modules = require("kafkajs-registry")
        return [str(require("node")), str(STRANGERS / "js" / "serde.js"), url, str(modules)]
    if name == "go":
        return [str(require("franz-go-registry")), url]
    assert name == "java"
    jars = str(require("confluent-jars") / "*")
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-cp", jars]
    require("javac")  # `java FILE.java` compiles the file
    return ["java", *options, str(STRANGERS / "JavaSerde.java"), url]


class Strangers:
    """Strangers of one run, each started when it is first asked for."""

    def __init__(self, url: str, directory: Path, stack: ExitStack) -> None:
        self._url, self._directory, self._stack = url, directory, stack
        self._known: dict[str, Stranger] = {}

    def __call__(self, name: str) -> Stranger:
        if name not in self._known:
            made = stranger(name, self._url, self._directory)
            self._known[name] = self._stack.enter_context(made)
        return self._known[name]
