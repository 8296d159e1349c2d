"""Confluent's REST API, path by path, over a real registry: answers, codes, media types, limits."""

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


def test_pages(registry: RegistryProcess, subject: str) -> None:
    for index in range(5):
        assert registry.register(f"{subject}-{index}", INT)[0] == 200
    names = [f"{subject}-{index}" for index in range(5)]
    path = f"/subjects?subjectPrefix={subject}"
    assert registry.ask("GET", path) == (200, names)
    assert registry.ask("GET", f"{path}&offset=1&limit=2") == (200, names[1:3])
    assert registry.ask("GET", f"{path}&offset=9") == (200, [])
    assert registry.ask("GET", f"{path}&limit=x")[0] == 404


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
    lines = dict(line.rsplit(" ", 1) for line in page.decode().splitlines() if line[0] != "#")
    metrics = {name.removeprefix("kafka_schema_registry_"): value for name, value in lines.items()}
    assert metrics["master_slave_role"] == metrics["node_count"] == "1"
    assert int(metrics["jersey_metrics_schemas_get_types_request_total"]) >= 1
    assert int(metrics["jetty_metrics_connections_active"]) >= 1
    assert int(metrics["api_success_count"]) >= 7
    _, body = registry.register("counted", {"type": "fixed", "name": "Counted", "size": 1})
    assert body["version"] == 1
    _, _, page = registry.ask_raw("GET", "/metrics")
    created = int(metrics["registered_count"]) + 1
    assert f"kafka_schema_registry_registered_count {created}\n".encode() in page


def test_media_types(registry: RegistryProcess) -> None:
    for accept, told in (("*/*", MEDIA_TYPE), ("application/json", "application/json")):
        status, headers, _ = registry.ask_raw("GET", "/subjects", headers={"Accept": accept})
        assert (status, headers["Content-Type"]) == (200, told)
    assert registry.ask_raw("GET", "/subjects", headers={"Accept": "text/html"})[0] == 406


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"schema": 7}', 400),
        (b"\xff\xfe", 400),
        (b'{"schema":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400),
        (b'{"metadata":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, 400),
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
