"""Confluent's REST API, path by path, over a real registry: answers, codes, media types, limits."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from headrace.client.admin.admin import Admin
from headrace.client.admin.topics import create_topic
from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess
from tests.support.server_process import free_port

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
INT, LONG, STRING = '"int"', '"long"', '"string"'


@pytest.fixture
def subject() -> str:
    return f"s-{uuid.uuid4()}"


def own_schema(**more: Any) -> dict[str, Any]:
    """A schema that nobody else registers."""
    return {"type": "fixed", "name": f"F{uuid.uuid4().hex}", "size": 1, **more}


def test_versions_ids_and_look_ups(registry: RegistryProcess, subject: str) -> None:
    schema = own_schema()
    status, body = registry.register(subject, schema)
    assert status == 200
    number, guid = body["id"], body["guid"]
    assert body["version"] == 1
    ask = registry.ask
    stored = json.dumps(schema, separators=(",", ":"))
    described = {"subject": subject, "version": 1, "id": number, "guid": guid, "schema": stored}
    assert ask("GET", f"/subjects/{subject}/versions/1") == (200, described)
    assert ask("GET", f"/subjects/{subject}/versions/latest") == (200, described)
    assert ask("GET", f"/subjects/{subject}/versions/-1") == (200, described)
    assert ask("GET", f"/subjects/{subject}/versions/1/schema") == (200, schema)
    assert ask("GET", f"/subjects/{subject}/versions/1/referencedby") == (200, [])
    assert ask("POST", f"/subjects/{subject}", {"schema": stored}) == (200, described)
    assert ask("GET", f"/schemas/ids/{number}") == (200, {"schema": stored, "guid": guid})
    assert ask("GET", f"/schemas/ids/{number}/schema") == (200, schema)
    assert ask("GET", f"/schemas/ids/{number}/subjects") == (200, [subject])
    assert ask("GET", f"/schemas/ids/{number}/versions") == (
        200,
        [{"subject": subject, "version": 1}],
    )
    assert ask("GET", f"/schemas/guids/{guid}")[1]["schema"] == stored
    assert ask("GET", f"/schemas/guids/{guid}/ids") == (200, [{"context": ".", "id": number}])
    assert ask("GET", f"/schemas?subjectPrefix={subject}") == (200, [described])
    assert ask("GET", f"/schemas/ids/{number}?fetchMaxId=true")[1]["maxId"] >= number


def test_pages(registry: RegistryProcess, subject: str) -> None:
    for index in range(5):
        assert registry.register(f"{subject}-{index}", INT)[0] == 200
    names = [f"{subject}-{index}" for index in range(5)]
    path = f"/subjects?subjectPrefix={subject}"
    assert registry.ask("GET", path) == (200, names)
    assert registry.ask("GET", f"{path}&offset=1&limit=2") == (200, names[1:3])
    assert registry.ask("GET", f"{path}&offset=9") == (200, [])
    assert registry.ask("GET", f"{path}&limit=x")[0] == 404


def test_soft_and_hard_deletes(registry: RegistryProcess, subject: str) -> None:
    ask = registry.ask
    number = registry.register(subject, own_schema())[1]["id"]
    assert ask("DELETE", f"/subjects/{subject}/versions/1?permanent=true")[1]["error_code"] == 40407
    assert ask("DELETE", f"/subjects/{subject}/versions/1") == (200, 1)
    assert ask("GET", f"/subjects/{subject}/versions")[1]["error_code"] == 40401
    assert ask("GET", f"/subjects/{subject}/versions?deleted=true") == (200, [1])
    assert ask("GET", f"/subjects/{subject}/versions?deletedAsNegative=true&deleted=true") == (
        200,
        [-1],
    )
    assert ask("GET", f"/subjects/{subject}/versions?deletedOnly=true") == (200, [1])
    assert ask("GET", f"/schemas/ids/{number}")[0] == 200
    assert ask("DELETE", f"/subjects/{subject}/versions/1?permanent=true") == (200, 1)
    assert ask("GET", f"/schemas/ids/{number}")[1]["error_code"] == 40403


def test_compatibility(registry: RegistryProcess, subject: str) -> None:
    ask, path = registry.ask, f"/compatibility/subjects/{subject}/versions"
    assert ask("POST", f"{path}/latest", {"schema": INT}) == (200, {"is_compatible": True})
    registry.register(subject, INT)
    assert ask("POST", f"{path}/latest", {"schema": LONG}) == (200, {"is_compatible": True})
    assert ask("POST", path, {"schema": STRING}) == (200, {"is_compatible": False})
    status, body = ask("POST", f"{path}/1?verbose=true", {"schema": STRING})
    assert status == 200
    assert not body["is_compatible"]
    assert "TYPE_MISMATCH" in body["messages"][0]
    assert ask("POST", f"{path}/7", {"schema": INT})[1]["error_code"] == 40402
    assert ask("POST", f"{path}/latest", {"schema": "{"})[1]["error_code"] == 42201
    assert registry.register(subject, STRING)[1]["error_code"] == 40901


def test_configs_and_modes(registry: RegistryProcess, subject: str) -> None:
    ask = registry.ask
    assert ask("GET", "/config") == (200, {"compatibilityLevel": "BACKWARD"})
    assert ask("GET", f"/config/{subject}")[1]["error_code"] == 40408
    default = ask("GET", f"/config/{subject}?defaultToGlobal=true")
    assert default == (200, {"compatibilityLevel": "BACKWARD"})
    full = {"compatibility": "FULL"}
    assert ask("PUT", f"/config/{subject}", full) == (200, full)
    assert ask("GET", f"/config/{subject}") == (200, {"compatibilityLevel": "FULL"})
    assert ask("PUT", f"/config/{subject}", {"compatibility": "x"})[1]["error_code"] == 42203
    assert ask("DELETE", f"/config/{subject}") == (200, {"compatibilityLevel": "FULL"})
    assert ask("GET", "/mode") == (200, {"mode": "READWRITE"})
    assert ask("GET", f"/mode/{subject}")[1]["error_code"] == 40409
    read_only = {"mode": "READONLY"}
    assert ask("PUT", f"/mode/{subject}", read_only) == (200, read_only)
    assert registry.register(subject, INT)[1]["error_code"] == 42205
    assert ask("DELETE", f"/mode/{subject}") == (200, read_only)
    assert ask("PUT", f"/mode/{subject}", {"mode": "x"})[1]["error_code"] == 42204
    assert ask("PUT", f"/mode/{subject}", {"mode": "IMPORT"}) == (200, {"mode": "IMPORT"})
    status, body = registry.register(subject, own_schema(), id=100_000, version=7)
    assert (status, body["id"], body["version"]) == (200, 100_000, 7)


def test_contexts(registry: RegistryProcess, subject: str) -> None:
    name = f":.{subject}:a"
    assert registry.register(name, INT)[1]["id"] == 1
    assert f".{subject}" in registry.ask("GET", "/contexts")[1]
    assert registry.ask("GET", f"/subjects?subjectPrefix=:.{subject}:") == (200, [name])
    assert registry.ask("DELETE", f"/contexts/.{subject}")[1]["error_code"] == 42211
    registry.ask("DELETE", f"/subjects/{name}")
    registry.ask("DELETE", f"/subjects/{name}?permanent=true")
    assert registry.ask("DELETE", f"/contexts/.{subject}") == (204, None)


def test_metadata_and_tags(registry: RegistryProcess, subject: str) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "ssn", "type": "string"}]}
    registry.register(subject, record, metadata={"properties": {"team": "x"}})
    found = registry.ask("GET", f"/subjects/{subject}/metadata?key=team&value=x")
    assert found[1]["version"] == 1
    assert registry.ask("GET", f"/subjects/{subject}/metadata?key=team&value=y")[0] == 404
    tags = [{"schemaEntity": {"entityPath": "R.ssn", "entityType": "sr_field"}, "tags": ["PII"]}]
    status, body = registry.ask(
        "POST", f"/subjects/{subject}/versions/1/tags", {"newVersion": 2, "tagsToAdd": tags}
    )
    assert status == 200
    assert body["version"] == 2
    assert body["metadata"] == {"properties": {"team": "x"}, "tags": {"R.ssn": ["PII"]}}
    assert registry.ask("POST", f"/subjects/{subject}/versions/2/tags", {"newVersion": 9})[0] == 422


def test_normalization(registry: RegistryProcess, subject: str) -> None:
    first = '{"title":"b","type":"object"}'
    second = '{"type":"object","title":"b"}'
    path = f"/subjects/{subject}/versions?normalize=true"
    for text in (first, second):
        status, body = registry.ask("POST", path, {"schema": text, "schemaType": "JSON"})
        assert (status, body["version"]) == (200, 1)


def test_what_tells_of_the_program(registry: RegistryProcess) -> None:
    ask = registry.ask
    assert ask("GET", "/") == (200, {})
    assert ask("POST", "/") == (200, {})
    assert ask("GET", "/schemas/types") == (200, ["JSON", "PROTOBUF", "AVRO"])
    clusters = ask("GET", "/v1/metadata/id")[1]["scope"]["clusters"]
    assert clusters["schema-registry-cluster"] == "schema-registry"
    assert clusters["kafka-cluster"]
    assert ask("GET", "/v1/metadata/version")[0] == 200
    assert ask("GET", "/v1/metadata/deployment")[0] == 200
    assert ask("GET", "/healthz") == (200, {"status": "ok", "primary": registry.url})
    _, _, page = registry.ask_raw("GET", "/metrics")
    assert b"kafka_schema_registry_master_slave_role 1" in page
    assert b'route="/subjects"' in page or b"http_requests_total" in page


def test_media_types(registry: RegistryProcess) -> None:
    for accept, told in (("*/*", MEDIA_TYPE), ("application/json", "application/json")):
        status, headers, _ = registry.ask_raw("GET", "/subjects", headers={"Accept": accept})
        assert (status, headers["Content-Type"]) == (200, told)
    assert registry.ask_raw("GET", "/subjects", headers={"Accept": "text/html"})[0] == 406


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 422),
        (b'{"schema": 7}', 422),
        (b"\xff\xfe", 400),
        (b'{"schema":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 422),
        (b'{"metadata":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, 422),
        (b'{"schema":"' + b"x" * (5 << 20) + b'"}', 422),
    ],
)
def test_bad_bodies_cost_themselves(
    registry: RegistryProcess, subject: str, body: bytes, status: int
) -> None:
    assert registry.ask_raw("POST", f"/subjects/{subject}/versions", body)[0] == status


def test_a_schema_bomb_costs_one_request(registry: RegistryProcess, subject: str) -> None:
    depth = 5_000
    deep = '{"type":"array","items":' * depth + INT + "}" * depth
    assert registry.register(subject, deep)[1]["error_code"] == 42201
    nested = {"allOf": [{"$ref": "#/definitions/a"}] * 2, "definitions": {"a": {"$ref": "#"}}}
    registry.register(f"{subject}-j", nested, schemaType="JSON")
    assert registry.register(f"{subject}-j", {**nested, "title": "x"}, schemaType="JSON")[0] < 500
    assert registry.register(subject, INT)[0] == 200


# ---- starting and stopping


def start_failure(*overrides: str) -> str:
    words = [f"--override={each}" for each in overrides]
    command = [sys.executable, "-m", "headrace.cli.main", "schema-registry-start", *words]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_start_up_errors_say_what_to_do(broker: HeadraceProcess, registry: RegistryProcess) -> None:
    brokers = f"kafkastore.bootstrap.servers=127.0.0.1:{broker.port}"
    assert "listeners=x" in start_failure("listeners=x")
    assert "cannot listen" in start_failure(brokers, f"listeners={registry.url}")
    here = f"listeners=http://127.0.0.1:{free_port()}"
    nobody = f"kafkastore.bootstrap.servers=127.0.0.1:{free_port()}"
    assert "cannot reach a broker" in start_failure(here, nobody)
    topic = f"unfit-{uuid.uuid4()}"
    with Admin(f"127.0.0.1:{broker.port}") as admin:
        create_topic(admin, topic, partitions=2, replication_factor=1)
    assert "exactly one" in start_failure(here, brokers, f"kafkastore.topic={topic}")


def test_a_stop_is_graceful(broker: HeadraceProcess, tmp_path: Path) -> None:
    settings = {
        "kafkastore.topic": f"_s-{tmp_path.name}",
        "schema.registry.group.id": tmp_path.name,
    }
    registry = RegistryProcess(tmp_path, f"127.0.0.1:{broker.port}", properties=settings)
    registry.start()
    registry.await_primary()
    started = time.monotonic()
    os.kill(registry.pid, signal.SIGTERM)
    while registry.is_running():
        assert time.monotonic() - started < 20, registry.log_tail()
        time.sleep(0.02)
    assert "Traceback" not in registry.log_tail()
    assert "GET '/healthz' 200" in registry.log_tail()
