"""Spark reads what four strangers' serializers wrote, and they read what Spark wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from tests.registry.serde_strangers import READERS, SCHEMAS, VALUES, WRITERS, Strangers
from tests.support.registry_process import RegistryProcess
from tests.support.spark_topics import Topics

pytestmark = pytest.mark.filterwarnings("ignore")  # of the strangers' own libraries

FORMATS = {"AVRO": "avro", "JSON": "jsonschema", "PROTOBUF": "protobuf"}


@pytest.fixture(scope="module", autouse=True)
def no_java() -> None:
    """One of the strangers is Java's."""


@pytest.fixture(scope="module")
def strangers(
    registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Strangers]:
    with ExitStack() as stack:
        yield Strangers(registry.url, tmp_path_factory.mktemp("strangers"), stack)


@pytest.mark.parametrize("kind", sorted(FORMATS))
def test_spark_and_strangers_read_each_other(
    spark: SparkSession,
    topics: Topics,
    registry: RegistryProcess,
    strangers: Strangers,
    kind: str,
) -> None:
    topic = topics.create(f"strangers-{kind.lower()}")
    subject, schema = f"{topic}-value", SCHEMAS[kind]
    written = [strangers(name).write(subject, kind, schema, VALUES[kind]) for name in WRITERS[kind]]
    topics.send(topic, written)
    options = {
        "kafka.bootstrap.servers": topics.bootstrap_servers,
        "schemaRegistry": registry.url,
        "valueFormat": FORMATS[kind],
    }
    frame = spark.read.format("headrace").options(subscribe=topic, **options).load()
    rows = [row.asDict(recursive=True) for row in frame.select("value.*").collect()]
    assert rows == [VALUES[kind]] * len(written)

    again = topics.create(f"again-{kind.lower()}")
    copies = frame.limit(1).select(fn.col("value"))
    writer = copies.write.format("headrace").mode("append")
    writer.options(topic=again, valueSchema=schema, **options).save()
    (copy,) = topics.values(again)
    assert copy is not None
    for name in READERS[kind]:
        own = schema if name == "python" else None
        found: Any = strangers(name).read(f"{again}-value", kind, copy, own)
        assert found == VALUES[kind], name
