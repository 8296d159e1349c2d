"""schemathesis reads the OpenAPI document that the registry serves: every answer is documented and of its form, and none is a
5xx.

`HEADRACE_OPENAPI_EXAMPLES=200` asks for more examples of every operation.
"""

import copy
import os
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.checks import unsupported_method

from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess

Json = Any

EXAMPLES = int(os.environ.get("HEADRACE_OPENAPI_EXAMPLES", "8"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
TEXTS = (
    '"string"',
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}',
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "int"}]}',
    '{"type": "object", "properties": {"a": {"type": "string"}}}',
    '{"$ref": "#/definitions/none"}',
    'syntax = "proto3"; message M { int32 a = 1; }',
    'import "other.proto"; message M { repeated N a = 1; }',
    "{",
    "",
)


@pytest.fixture(scope="module")
def fuzzed(
    broker: HeadraceProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    """A registry whose settings no other test needs."""
    properties = {"kafkastore.topic": "_fuzzed", "schema.registry.group.id": "fuzzed"}
    directory = tmp_path_factory.mktemp("fuzzed")
    brokers = f"127.0.0.1:{broker.port}"
    with RegistryProcess(directory, brokers, properties=properties) as registry:
        registry.await_primary()
        yield registry


def narrowed(document: Json, method: str, path: str, guid: str) -> Json:
    """The document with one operation, whose examples often lead somewhere."""
    found = copy.deepcopy(document)
    operation = found["paths"][path][method]
    found["paths"] = {path: {method: operation}}
    choices: dict[str, list[Json]] = {
        "subject": ["fuzzed", "missing", ":.ctx:fuzzed", ":.ctx:", "a/b", "__GLOBAL"],
        "version": ["1", "latest", "-1", "99", "x"],
        "id": [1, 2, 99999, -1],
        "guid": [guid, "x"],
        "context": [".ctx", ".", "none"],
    }
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            anything = parameter["schema"]
            if anything == {"type": "string"}:
                anything = {"type": "string", "minLength": 1}
            some = {"enum": choices[parameter["name"]]}
            parameter["schema"] = {"anyOf": [some, some, anything]}
    schemas = found["components"]["schemas"]
    if "SubmittedSchema" in schemas:
        properties = schemas["SubmittedSchema"]["properties"]
        properties["schema"] = {"anyOf": [{"enum": TEXTS}, properties["schema"]]}
        properties["schemaType"] = {"enum": ["AVRO", "JSON", "PROTOBUF", None, "XML"]}
    if "ModeChange" in schemas:
        schemas["ModeChange"]["properties"]["mode"] = {
            "enum": ["READWRITE", "READONLY", "IMPORT", "FORWARD", "x", None]
        }
    return found


def prepare(registry: RegistryProcess) -> str:
    """Undo what an operation's examples did that would have the others refused. The GUID of a schema."""
    for path in ("/mode?recursive=true", "/mode/fuzzed", "/config", "/config/fuzzed"):
        registry.ask("DELETE", path)
    for subject in ("fuzzed", ":.ctx:fuzzed"):
        registry.ask("DELETE", f"/mode/{subject}")
        status, body = registry.register(subject, '"string"')
        assert status == 200, body
    return str(body["guid"])


def run(registry: RegistryProcess, document: Json, method: str, path: str) -> None:
    schema = schemathesis.openapi.from_dict(narrowed(document, method, path, prepare(registry)))
    operation = schema[path][method.upper()]

    @given(
        case=st.sampled_from(list(schemathesis.GenerationMode)).flatmap(
            lambda mode: operation.as_strategy(generation_mode=mode)
        )
    )
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def ask(case: Any) -> None:
        case.call_and_validate(base_url=registry.url, checks=CHECKS)

    ask()


@pytest.mark.timeout(3600 if EXAMPLES > 20 else 300)
def test_answers_are_documented(fuzzed: RegistryProcess) -> None:
    status, document = fuzzed.ask("GET", "/openapi.json")
    assert status == 200
    failed: list[Exception] = []
    for path, methods in document["paths"].items():
        for method in methods:
            try:
                run(fuzzed, document, method, path)
            except Exception as error:  # noqa: BLE001 - all of them are told together
                error.add_note(f"{method} {path}")
                failed.append(error)
    if failed:
        raise ExceptionGroup("operations with undocumented answers", failed)
