"""Kafka's own Java client, in one JVM for the whole run (`tests/support/kafka/JavaClient.java`)."""

import atexit
import base64
import json
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.clients.client import TIMEOUT_S, Refused
from tests.conformance.samples import CODECS, Received, Record
from tests.support import kafka_tools, tools
from tests.support.jvm import java_command

SOURCE = Path(tools.__file__).with_name("kafka") / "JavaClient.java"


class Java:
    """The Java client."""

    name = "java"

    def codecs(self) -> tuple[str, ...]:
        return CODECS

    def writable(self, record: Record) -> Record | None:
        return record

    def produce(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], *, codec: str
    ) -> None:
        config = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": "50"}
        config["max.request.size"] = str(100 << 20)
        _ask(
            "produce",
            config,
            topic=topic,
            partition=partition,
            records=[_to_json(record) for record in records],
        )

    def consume(self, bootstrap: str, topic: str, count: int) -> list[Received]:
        return _consume({"bootstrap.servers": bootstrap}, topic, count)

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> list[Received]:
        config = {"bootstrap.servers": bootstrap, "group.id": group, "max.poll.records": str(count)}
        return _consume(config, topic, count)

    def offset_for_time(
        self, bootstrap: str, topic: str, partition: int, timestamp_ms: int
    ) -> int | None:
        config = {"bootstrap.servers": bootstrap}
        answer = _ask(
            "offset_for_time", config, topic=topic, partition=partition, timestamp_ms=timestamp_ms
        )
        offset: int | None = answer["offset"]
        return offset

    def member_command(self, bootstrap: str, topic: str, group: str) -> list[str]:
        return kafka_tools.command(
            "verifiable-consumer",
            *(
                "--bootstrap-server",
                bootstrap,
                "--topic",
                topic,
                "--group-id",
                group,
                "--session-timeout",
                "3000",
            ),
            *("--command-config", str(SOURCE.with_name("member.properties"))),
        )

    def read_assignment(self, line: str, topic: str) -> frozenset[int] | None:
        if not line.startswith("{"):
            return None
        event = json.loads(line)
        match event["name"]:
            case "partitions_assigned":
                return frozenset(
                    told["partition"] for told in event["partitions"] if told["topic"] == topic
                )
            case "partitions_revoked":
                return frozenset()
        return None


def _consume(config: dict[str, str], topic: str, count: int) -> list[Received]:
    config |= {"auto.offset.reset": "earliest", "enable.auto.commit": "false"}
    answer = _ask("consume", config, topic=topic, count=count, timeout_ms=int(TIMEOUT_S * 1000))
    received = [_from_json(found) for found in answer["records"]]
    assert len(received) >= count, f"only {len(received)} of {count} records arrived in time"
    return received


@cache
def _jvm() -> subprocess.Popen[str]:
    """One process for the run; it ends when its standard input is closed."""
    # A source file is compiled as it starts, so it needs the Java that has a compiler.
    java = tools.require("javac").resolve().with_name("java")
    jvm = subprocess.Popen(
        java_command(str(SOURCE), java=java),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    atexit.register(jvm.communicate)
    return jvm


def _ask(op: str, config: dict[str, str], **arguments: object) -> dict[str, Any]:
    jvm = _jvm()
    assert jvm.stdin is not None
    assert jvm.stdout is not None
    jvm.stdin.write(json.dumps({"op": op, "config": config, **arguments}) + "\n")
    jvm.stdin.flush()
    answer: dict[str, Any] = json.loads(jvm.stdout.readline())
    if "error" in answer:
        raise Refused(answer["error"])
    return answer


def _to_json(record: Record) -> dict[str, object]:
    return {
        "key": _encode(record.key),
        "value": _encode(record.value),
        "headers": [[name, _encode(value)] for name, value in record.headers],
        "timestamp_ms": record.timestamp_ms,
    }


def _from_json(found: dict[str, Any]) -> Received:
    record = Record(
        key=_decode(found["key"]),
        value=_decode(found["value"]),
        headers=tuple((name, _decode(value)) for name, value in found["headers"]),
        timestamp_ms=found["timestamp_ms"],
    )
    return Received(partition=found["partition"], offset=found["offset"], record=record)


def _encode(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
