"""Spark's own Kafka connector works against our broker: batch, streaming, sink; and ours takes its checkpoints over."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing.embedded_broker import EmbeddedBroker
from tests.support import tools
from tests.support.spark_kafka import find_jars
from tests.support.spark_topics import Topics


@pytest.fixture(scope="module", autouse=True)
def no_java() -> None:
    """Maven, which fetches the connector, runs on Java."""


@pytest.fixture
def jars() -> str:
    tools.require("maven")
    return ",".join(str(jar) for jar in find_jars())


@pytest.mark.timeout(900)
def test_sparks_own_connector(jars: str, tmp_path: Path) -> None:
    with EmbeddedBroker() as broker, Topics(broker, suffix="") as topics:
        topics.create_named("numbers", 3)
        topics.create_named("copies", 2)
        job = [sys.executable, "-m", "tests.pipelines.kafka_connector_job"]
        done = subprocess.run(
            [*job, topics.bootstrap_servers, jars, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert found["total"] == sum(range(500))
        assert sum(found["batches"]) == 500
        assert len(found["batches"]) >= 3
        numbers, copies = topics.read("numbers"), topics.read("copies")
        assert sum(found["taken_over"]) == 50, "ours goes on where Spark's own connector was"
        assert sorted(int(each.value or b"") for each in copies) == list(range(550))
        assert found["by_name"] == 550, "an installed source is found by its name"
        assert {each.key for each in numbers} == {b"%d" % number for number in range(7)}
