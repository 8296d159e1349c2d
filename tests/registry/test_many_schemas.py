"""Start-up with many schemas: how long the replay takes, and how much memory the state needs."""

import json
import os
import time
import uuid
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

from headrace.client.admin.admin import Admin
from headrace.client.admin.topics import create_topic
from headrace.registry.state.records import SchemaKey, SchemaValue, encode_key, encode_value
from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess

COUNT = int(os.environ.get("HEADRACE_MANY_SCHEMAS", "5000"))
MAX_SECONDS = 60
MAX_BYTES = 500 << 20
VERSIONS = 10


def schema_of(number: int) -> str:
    """A record with seven fields, about 500 bytes of text."""
    fields = [
        {"name": f"field_{each}_{number}", "type": ["null", "string"], "default": None}
        for each in range(7)
    ]
    schema = {
        "type": "record",
        "name": f"Record{number}",
        "namespace": "org.example",
        "fields": fields,
    }
    return json.dumps(schema, separators=(",", ":"))


@pytest.mark.timeout(600)
def test_many_schemas_are_restored(broker: HeadraceProcess, tmp_path: Path) -> None:
    brokers, topic = f"127.0.0.1:{broker.port}", f"_many-{uuid.uuid4()}"
    with Admin(brokers) as admin:
        configs = {"cleanup.policy": "compact"}
        create_topic(admin, topic, partitions=1, replication_factor=1, configs=configs)
    producer = Producer({"bootstrap.servers": brokers, "queue.buffering.max.messages": 2 * COUNT})
    for number in range(COUNT):
        subject, version = f"subject-{number // VERSIONS}", number % VERSIONS + 1
        text = schema_of(number)
        value = SchemaValue(
            subject=subject, version=version, id=number + 1, schema=text, deleted=False
        )
        key = encode_key(SchemaKey(subject=subject, version=version))
        producer.produce(topic, encode_value(value), key, partition=0)
    assert producer.flush(300) == 0
    settings = {"kafkastore.topic": topic, "schema.registry.group.id": topic}
    started = time.monotonic()
    with RegistryProcess(tmp_path, brokers, properties=settings) as registry:
        seconds = time.monotonic() - started
        used = psutil.Process(registry.pid).memory_info().rss
        print(f"{COUNT} schemas: ready after {seconds:.1f} s, {used >> 20} MiB")  # noqa: T201 - with -s
        status, body = registry.ask("GET", f"/schemas/ids/{COUNT}")
        assert (status, body["schema"]) == (200, schema_of(COUNT - 1))
    assert seconds < MAX_SECONDS
    assert used < MAX_BYTES
