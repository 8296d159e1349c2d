"""Schema bombs, slow bodies and idle connections cost themselves: somebody else is served all the while."""

import contextlib
import itertools
import json
import socket
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.registry_process import RegistryProcess

IDLE = 2000


class Bystander(threading.Thread):
    """Registers new schemas and reads them, one after the other, and notes every answer that is not 200."""

    def __init__(self, registry: RegistryProcess) -> None:
        super().__init__()
        self._registry = registry
        self._is_over = threading.Event()
        self.served = 0
        self.wrong: list[Any] = []

    def run(self) -> None:
        subject = f"bystander-{uuid.uuid4()}"
        for number in itertools.count():
            schema = {
                "type": "enum",
                "name": "E",
                "symbols": [f"S{each}" for each in range(number + 1)],
            }
            try:
                status, body = self._registry.register(subject, schema)
                if status == 200:
                    status, body = self._registry.ask("GET", f"/schemas/ids/{body['id']}")
            except OSError as error:
                status, body = 0, repr(error)
            if status != 200:
                self.wrong.append((status, body))
            self.served += 1
            if self._is_over.is_set():
                return

    def __enter__(self) -> "Bystander":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()


@pytest.fixture
def bystander(registry: RegistryProcess) -> Iterator[Bystander]:
    with Bystander(registry) as found:
        yield found
    assert found.wrong == []
    assert found.served > 0


def _doubling(count: int) -> dict[str, Any]:
    """A JSON schema that would be 2**count schemas if it were written out."""
    definitions: dict[str, Any] = {"d0": {"type": "string"}}
    for number in range(1, count):
        ref = {"$ref": f"#/definitions/d{number - 1}"}
        definitions[f"d{number}"] = {"anyOf": [ref, {"properties": {"a": ref, "b": ref}}]}
    return {"$ref": f"#/definitions/d{count - 1}", "definitions": definitions}


def _alternatives(count: int, kind: str) -> dict[str, Any]:
    """Alternatives of which each must be compared with every other one."""
    return {
        "oneOf": [
            {"type": "object", "properties": {f"p{each}": {"type": kind}, "q": {"type": "string"}}}
            for each in range(count)
        ]
    }


_WIDE_AVRO = {
    "type": "record",
    "name": "R",
    "fields": [{"name": f"f{each}", "type": ["null", "string"]} for each in range(20_000)],
}
_WIDE_PROTO = 'syntax = "proto3"; ' + "".join(
    f"message M{each} {{ M{max(each - 1, 0)} a = 1; map<string, M0> b = 2; }}"
    for each in range(2_000)
)
# What is registered, and what follows it.
BOMBS: dict[str, tuple[str, Any, Any]] = {
    "wide Avro": ("AVRO", _WIDE_AVRO, {**_WIDE_AVRO, "doc": "d"}),
    "deep Avro": ("AVRO", '{"type":"array","items":' * 9_000 + '"int"' + "}" * 9_000, '"int"'),
    "doubling JSON": ("JSON", _doubling(40), {**_doubling(40), "title": "t"}),
    "alternatives": ("JSON", _alternatives(300, "string"), _alternatives(300, "number")),
    "deep JSON": ("JSON", '{"not":' * 9_000 + "{}" + "}" * 9_000, {}),
    "circle": ("JSON", {"allOf": [{"$ref": "#"}] * 9}, {"allOf": [{"$ref": "#"}] * 8}),
    "pattern": (
        "JSON",
        {"patternProperties": {"(a*)*$": {"type": "string"}}, "additionalProperties": False},
        {"properties": {"a" * 5_000 + "b": {}}, "patternProperties": {"(a*)*$": {}}},
    ),
    "wide Protobuf": ("PROTOBUF", _WIDE_PROTO, _WIDE_PROTO + "message N {}"),
    "deep Protobuf": ("PROTOBUF", "message M {" * 9_000 + "}" * 9_000, "message M {}"),
    "imports itself": ("PROTOBUF", 'import "schema.proto"; message M {}', "message M {}"),
    "a secret": ("PROTOBUF", 'import "../../../../etc/passwd"; message M {}', "message M {}"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_schema_bomb_costs_one_request(
    registry: RegistryProcess, bystander: Bystander, name: str
) -> None:
    subject = f"bomb-{uuid.uuid4()}"
    schema_type, *schemas = BOMBS[name]
    for schema in schemas:
        status, body = registry.register(subject, schema, schemaType=schema_type)
        assert status in (200, 409, 422), body
        assert "root:" not in json.dumps(body)


def test_references_in_a_circle_cannot_be_made(registry: RegistryProcess) -> None:
    subject = f"circle-{uuid.uuid4()}"
    reference = {"name": "R", "subject": subject, "version": 1}
    schema = {"type": "array", "items": "R"}
    status, body = registry.register(subject, schema, references=[reference])
    assert (status, body["error_code"]) == (422, 42201)


def test_a_long_chain_of_references(registry: RegistryProcess, bystander: Bystander) -> None:
    """A schema with all that it needs is judged at once; what is too long to be judged is refused."""
    prefix = uuid.uuid4().hex
    references: list[dict[str, Any]] = []
    for number in range(40):
        fields = [{"name": "f", "type": f"R{number - 1}" if number else "int"}]
        schema = {"type": "record", "name": f"R{number}", "fields": fields}
        status, body = registry.register(f"{prefix}-{number}", schema, references=references)
        assert status == 200, body
        references = [{"name": f"R{number}", "subject": f"{prefix}-{number}", "version": 1}]


def test_slow_bodies_and_idle_connections(registry: RegistryProcess, bystander: Bystander) -> None:
    head = b"POST /subjects/slow/versions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"
    before = bystander.served
    with contextlib.ExitStack() as stack:
        for number in range(IDLE):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", registry.port)))
            if number % 10 == 0:
                connection.sendall(head)
            elif number % 10 == 1:
                connection.sendall(b"GET /sub")
        now = bystander.served
        assert registry.ask("GET", "/subjects")[0] == 200
        while bystander.served <= now + 3:
            assert bystander.is_alive()
            bystander.join(0.05)
    assert bystander.served > before
