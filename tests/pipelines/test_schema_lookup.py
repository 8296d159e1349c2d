"""Where Spark finds the schemas of records: contexts, references, ids that nobody knows, a registry that is away."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headrace.schemas.wire_format import encode_reference
from headrace.testing.embedded_broker import EmbeddedBroker
from tests.pipelines.schema_frames import reader, values, write
from tests.support.registry_process import RegistryProcess
from tests.support.spark_topics import Topics

pytestmark = pytest.mark.filterwarnings("ignore")  # of the client's own libraries

ONE_ROW = "select named_struct('id', 7L, 'customer', named_struct('name', 'Ada')) as value"
UNKNOWN_ID = 999_999
AVRO_CUSTOMER = {
    "type": "record",
    "name": "shop.Customer",
    "fields": [{"name": "name", "type": "string"}],
}
AVRO_ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "customer", "type": "shop.Customer"}],
}
JSON_CUSTOMER = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "additionalProperties": False,
}
JSON_ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "customer": {"$ref": "customer.json"}},
    "additionalProperties": False,
}
PROTO_CUSTOMER = 'syntax = "proto3"; package shop; message Customer { string name = 1; }'
PROTO_ORDER = """syntax = "proto3"; package shop; import "customer.proto";
message Order { int64 id = 1; Customer customer = 2; }"""


@pytest.mark.parametrize(
    ("language", "name", "referenced", "text"),
    [
        ("avro", "shop.Customer", json.dumps(AVRO_CUSTOMER), json.dumps(AVRO_ORDER)),
        ("jsonschema", "customer.json", json.dumps(JSON_CUSTOMER), json.dumps(JSON_ORDER)),
        ("protobuf", "customer.proto", PROTO_CUSTOMER, PROTO_ORDER),
    ],
    ids=["avro", "jsonschema", "protobuf"],
)
def test_references_in_both_directions(
    spark: SparkSession,
    topics: Topics,
    registry: RegistryProcess,
    language: str,
    name: str,
    referenced: str,
    text: str,
) -> None:
    topic = topics.create(f"referring-{language}")
    context, customer = f".{topic}", f"{topic}-customer"
    kind = {"avro": "AVRO", "jsonschema": "JSON", "protobuf": "PROTOBUF"}[language]
    # The subject of that name outside of the context must not be taken.
    assert registry.register(customer, '"int"')[0] == 200
    assert registry.register(f":{context}:{customer}", referenced, schemaType=kind)[0] == 200
    options = {"valueFormat": language, "schemaRegistry.context": context}
    references = json.dumps([{"name": name, "subject": customer, "version": 1}])
    given = {"valueSchema": text, "valueSchemaReferences": references}
    write(spark.sql(ONE_ROW), topics, registry, topic, **options, **given)
    status, stored = registry.ask("GET", f"/subjects/:{context}:{topic}-value/versions/latest")
    assert (status, stored["references"]) == (200, json.loads(references))
    found = values(reader(spark, topics, registry, topic, **options).load())
    assert found == [{"id": 7, "customer": {"name": "Ada"}}]
    mine = values(reader(spark, topics, registry, topic, **options, **given).load())
    assert mine == found


def test_confluents_deserializer_finds_what_a_written_schema_refers_to(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("referring")
    assert registry.register(f"{topic}-customer", AVRO_CUSTOMER)[0] == 200
    references = [{"name": "shop.Customer", "subject": f"{topic}-customer", "version": 1}]
    given = {
        "valueSchema": json.dumps(AVRO_ORDER),
        "valueSchemaReferences": json.dumps(references),
    }
    write(spark.sql(ONE_ROW), topics, registry, topic, **given)
    (value,) = topics.values(topic)
    context = SerializationContext(topic, MessageField.VALUE)
    assert AvroDeserializer(client)(value, context) == {"id": 7, "customer": {"name": "Ada"}}


def test_ids_count_within_a_context(
    spark: SparkSession, topics: Topics, registry: RegistryProcess
) -> None:
    topic = topics.create("in-context")
    assert registry.register(f"{topic}-other", '"int"')[0] == 200  # so that id 1 means another one
    context = f".{topic}"
    inside = {"schemaRegistry.context": context}
    write(spark.sql(ONE_ROW), topics, registry, topic, **inside)
    (value,) = topics.values(topic)
    assert value is not None
    assert value.startswith(encode_reference(1))
    row = {"id": 7, "customer": {"name": "Ada"}}
    assert values(reader(spark, topics, registry, topic, **inside).load()) == [row]
    by_subject = {"valueSubject": f":{context}:{topic}-value"}
    assert values(reader(spark, topics, registry, topic, **by_subject).load()) == [row]


def test_an_unknown_id_follows_the_option(
    spark: SparkSession, topics: Topics, registry: RegistryProcess
) -> None:
    topic, dead = topics.create("unknown"), topics.create("dead")
    write(spark.sql(ONE_ROW), topics, registry, topic)
    (good,) = topics.values(topic)
    assert good is not None
    unknown = encode_reference(UNKNOWN_ID) + good[5:]
    topics.send(topic, [unknown, good])
    row = {"id": 7, "customer": {"name": "Ada"}}

    def read(**options: str) -> list[Any]:
        return values(reader(spark, topics, registry, topic, **options).load())

    with pytest.raises(PySparkException, match=rf"offset 1 .*no schema {UNKNOWN_ID}"):
        read(onDecodeError="fail")
    assert read(onDecodeError="null") == [row, None, row]
    assert read(onDecodeError="skip") == [row, row]
    assert topics.values(dead) == []
    assert read(onDecodeError="deadLetterTopic", deadLetterTopic=dead) == [row, row]
    (letter,) = topics.read(dead)
    assert letter.value == unknown
    why = dict(letter.headers)["headrace.error"]
    assert why is not None
    assert f"the registry has no schema {UNKNOWN_ID}".encode() in why


@pytest.fixture
def own_registry(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[RegistryProcess]:
    """A registry that a test may kill."""
    topic = {
        "kafkastore.topic": f"_schemas_{tmp_path.name}",
        "schema.registry.group.id": tmp_path.name,
    }
    with RegistryProcess(tmp_path, broker.bootstrap_servers, properties=topic) as running:
        running.await_primary()
        yield running


def test_a_registry_that_comes_back_is_asked_again_and_no_row_is_passed_over(
    spark: SparkSession, topics: Topics, own_registry: RegistryProcess
) -> None:
    topic = topics.create("outage")
    write(spark.sql(ONE_ROW), topics, own_registry, topic)
    patient = {"onDecodeError": "skip", "schemaRegistry.total.timeout.ms": "120000"}
    frame = reader(spark, topics, own_registry, topic, **patient).load()
    own_registry.kill()
    with ThreadPoolExecutor(1) as threads:
        with socket.create_server(("127.0.0.1", own_registry.port)) as nobody:
            nobody.settimeout(120)
            rows = threads.submit(values, frame)
            nobody.accept()[0].close()  # the task asked, and got no answer
        own_registry.start()
        assert rows.result() == [{"id": 7, "customer": {"name": "Ada"}}]


def test_a_sink_whose_registry_is_away_writes_nothing(
    spark: SparkSession, topics: Topics, registry: RegistryProcess
) -> None:
    topic = topics.create("outage")
    away = {
        "schemaRegistry": "http://127.0.0.1:9",
        "schemaRegistry.total.timeout.ms": "200",
    }
    with pytest.raises(PySparkException, match="the schema registry does not answer"):
        write(spark.sql(ONE_ROW), topics, registry, topic, **away)
    assert topics.values(topic) == []
