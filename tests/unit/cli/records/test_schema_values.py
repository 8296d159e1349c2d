"""The schema that the console producer writes with, over a registry client whose transport answers from a table."""

import json
from typing import Any

import pytest

pytest.importorskip("fastavro")

from headrace.cli.records.schema_values import SchemaWriter
from headrace.cli.shell.command_line import Failure
from headrace.schemas.registry_client import SchemaRegistryClient
from headrace.schemas.registry_transport import Answer

PROTO = {"schema": 'syntax = "proto3"; message M { int32 i = 1; }', "schemaType": "PROTOBUF"}
ANSWERS: dict[str, Any] = {
    "/schemas/ids/7": PROTO,
    "/subjects/t-value/versions/latest": {**PROTO, "id": 7, "subject": "t-value", "version": 1},
    "/schemas/ids/8": {"schema": '"long"'},
}


class Table:
    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        return Answer(200, json.dumps(ANSWERS[path]).encode())

    def close(self) -> None:
        pass


def writer(language: str, **properties: str) -> SchemaWriter:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    client = SchemaRegistryClient(Table())
    return SchemaWriter(client, given, language=language, topic="t", is_key=False)


def test_the_schema_of_an_id() -> None:
    assert writer("avro", value_schema_id="8").serialized(b"1") == b"\0\0\0\0\x08\x02"


@pytest.mark.parametrize("properties", [{"value_schema_id": "7"}, {}])
def test_a_schema_of_another_language_is_refused(properties: dict[str, str]) -> None:
    with pytest.raises(Failure) as failure:
        writer("avro", **properties)
    assert failure.value.what == "the schema of the values cannot be used"
    assert failure.value.why == "the schema 7 is of the type PROTOBUF, not AVRO"
    assert failure.value.hint == "--value-format protobuf"
