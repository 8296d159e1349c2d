"""Frames of topics whose values have schemas of a registry, and values that confluent-kafka's serializer wrote."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import DataFrame, SparkSession

from tests.support.registry_process import RegistryProcess
from tests.support.spark_topics import Topics

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {
            "name": "amount",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def avro(client: SchemaRegistryClient, topic: str, schema: Any, *rows: Any) -> list[bytes]:
    serializer = AvroSerializer(client, json.dumps(schema))
    context = SerializationContext(topic, MessageField.VALUE)
    return [serializer(row, context) or b"" for row in rows]


def reader(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, topic: str, **options: str
) -> Any:
    return (
        spark.read.format("headrace")
        .option("kafka.bootstrap.servers", topics.bootstrap_servers)
        .option("subscribe", topic)
        .option("schemaRegistry", registry.url)
        .option("valueFormat", "avro")
        .options(**options)
    )


def values(frame: DataFrame) -> list[Any]:
    rows = frame.orderBy("partition", "offset").select("value").collect()
    return [each.value.asDict(recursive=True) if each.value else None for each in rows]


def write(
    frame: DataFrame, topics: Topics, registry: RegistryProcess, topic: str, **more: str
) -> None:
    given = {
        "kafka.bootstrap.servers": topics.bootstrap_servers,
        "topic": topic,
        "valueFormat": "avro",
        "schemaRegistry": registry.url,
    }
    frame.write.format("headrace").mode("append").options(**(given | more)).save()
