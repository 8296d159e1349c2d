"""Runs a pipeline, a shipped example or a test's own, run by run, in the tests' own Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headrace.pipelines.definitions.pipeline_file import check, load
from headrace.pipelines.runs.datasets import Datasets
from tests.support.spark_topics import Topics

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "pipelines"
PATIENCE_S = 90


class ExampleRun:
    """One pipeline on one broker. `once` reads what is there, and remembers how far it came."""

    def __init__(
        self, spark: SparkSession, topics: Topics, example: str | Path, directory: Path
    ) -> None:
        self._spark = spark
        self._topics = topics
        self._directory = directory
        spark.conf.set("headrace.bootstrap.servers", topics.bootstrap_servers)
        path = example if isinstance(example, Path) else EXAMPLES / f"{example}.py"
        self.definitions = load(path, variables={"spark": spark})
        check(self.definitions, bootstrap_servers=topics.bootstrap_servers)

    def once(self) -> None:
        datasets = Datasets(
            self._spark,
            self.definitions,
            bootstrap_servers=self._topics.bootstrap_servers,
            directory=self._directory,
        )
        datasets.register_views()
        flows = [flow for flow in self.definitions.flows.values() if not flow.is_batch]
        queries = [datasets.start(flow, available_now=True) for flow in flows]
        for query in queries:
            assert query.awaitTermination(PATIENCE_S), f"{query.name} did not end"
        for flow in self.definitions.flows.values():
            if flow.is_batch:
                datasets.compute(flow)

    def send(self, topic: str, events: list[dict[str, Any]], key: str | None = None) -> None:
        pairs = [(str(event[key]) if key else None, json.dumps(event)) for event in events]
        self._topics.send_pairs(topic, pairs)

    def found(self, topic: str) -> list[dict[str, Any]]:
        return [json.loads(value or b"null") for value in self._topics.values(topic)]
