"""The REST proxy as a process, and a small client for its HTTP API."""

import base64
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.http_program_process import STOP_S, HttpProgramProcess, Json

__all__ = ["STOP_S", "V2", "RestConsumer", "RestProcess", "base64_text", "places", "v2_type"]

V2 = "application/vnd.kafka.v2+json"
SHORT_WAIT_MS = 300
PATIENCE_S = 60.0


def v2_type(name: str) -> str:
    """The media type of records in a format."""
    return f"application/vnd.kafka.{name}.v2+json"


def base64_text(data: bytes) -> str:
    """Bytes as they are written in JSON."""
    return base64.b64encode(data).decode()


class RestProcess(HttpProgramProcess):
    """A proxy; `kill` and `start` again keep its address."""

    def __init__(
        self,
        directory: Path,
        brokers: str,
        *,
        registry: str = "",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        settings = {
            "bootstrap.servers": brokers,
            "schema.registry.url": registry,
            "consumer.request.timeout.ms": "10000",
            **(properties or {}),
        }
        super().__init__(directory, "rest-start", settings)
        self._cluster: str | None = None

    @property
    def cluster(self) -> str:
        """The path of the cluster."""
        if self._cluster is None:
            _, body = self.ask("GET", "/v3/clusters")
            self._cluster = f"/v3/clusters/{body['data'][0]['cluster_id']}"
        return self._cluster

    # ---- version 3

    def v3(self, method: str, path: str, body: Json = None) -> tuple[int, Json]:
        """A request for something in the cluster."""
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self.ask(method, f"{self.cluster}{path}", body, headers=headers)

    def create_topic(self, name: str, partitions: int = 1, **more: Json) -> None:
        body = {"topic_name": name, "partitions_count": partitions, **more}
        status, answer = self.v3("POST", "/topics", body)
        assert status == 201, answer

    def produce(self, topic: str, *records: Json) -> list[Json]:
        """Records through `records`; their answers."""
        data = b"".join(json.dumps(each).encode() for each in records)
        status, _, text = self.ask_raw(
            "POST",
            f"{self.cluster}/topics/{topic}/records",
            data,
            headers={"Content-Type": "application/json"},
        )
        assert status == 200, text
        return [json.loads(line) for line in text.splitlines()]

    # ---- version 2

    def v2(self, method: str, path: str, body: Json = None, **headers: str) -> tuple[int, Json]:
        """A request of version 2."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            given.setdefault("Content-Type", V2)
        return self.ask(method, path, body, headers=given)

    def produce_v2(self, topic: str, kind: str, body: Json) -> tuple[int, Json]:
        headers = {"Content-Type": v2_type(kind)}
        return self.ask("POST", f"/topics/{topic}", body, headers=headers)

    def consumer(self, group: str, **settings: Any) -> "RestConsumer":
        """A new consumer instance; names of settings have `_` for `.`."""
        body = {name.replace("_", "."): value for name, value in settings.items()}
        body.setdefault("auto.offset.reset", "earliest")
        body.setdefault("fetch.min.bytes", 0)
        status, answer = self.v2("POST", f"/consumers/{group}", body)
        assert status == 200, answer
        return RestConsumer(self, group, answer["instance_id"], body.get("format", "binary"))


class RestConsumer:
    """A consumer instance of a proxy."""

    def __init__(self, proxy: RestProcess, group: str, name: str, kind: str) -> None:
        self.proxy = proxy
        self.path = f"/consumers/{group}/instances/{name}"
        self._accept = v2_type(kind)

    def ask(self, method: str, path: str, body: Json = None) -> tuple[int, Json]:
        return self.proxy.v2(method, f"{self.path}{path}", body)

    def do(self, method: str, path: str, body: Json = None, *, status: int = 204) -> Json:
        """A request that must succeed."""
        found, answer = self.ask(method, path, body)
        assert found == status, answer
        return answer

    def subscribe(self, *topics: str) -> None:
        self.do("POST", "/subscription", {"topics": list(topics)})

    def assign(self, *partitions: tuple[str, int]) -> None:
        self.do("POST", "/assignments", {"partitions": places(*partitions)})

    def read(self, *, timeout_ms: int = 10_000, max_bytes: int = -1) -> tuple[int, Json]:
        return self.proxy.ask(
            "GET",
            f"{self.path}/records?timeout={timeout_ms}&max_bytes={max_bytes}",
            headers={"Accept": self._accept},
        )

    def records(self, count: int) -> list[Json]:
        """Read until there are so many records."""
        found: list[Json] = []
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < count and time.monotonic() < deadline:
            status, answer = self.read(timeout_ms=2000)
            assert status == 200, answer
            found += answer
        assert len(found) == count, found
        return found

    def nothing_more(self) -> bool:
        """Whether a short read gives nothing."""
        return self.read(timeout_ms=SHORT_WAIT_MS) == (200, [])

    def delete(self) -> None:
        self.do("DELETE", "")


def places(*partitions: tuple[str, int]) -> list[Json]:
    return [{"topic": topic, "partition": partition} for topic, partition in partitions]
