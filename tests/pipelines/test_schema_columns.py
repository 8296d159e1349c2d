"""Values with schemas of a registry as Spark's columns, in both directions; the other side is confluent-kafka's."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from headrace.schemas.wire_format import VALUE_HEADER, encode_reference
from tests.pipelines.schema_frames import ORDER, avro, reader, values, write
from tests.support.registry_process import RegistryProcess
from tests.support.spark_topics import Topics

pytestmark = pytest.mark.filterwarnings("ignore")  # of the client's own libraries


def with_fields(schema: Any, *fields: Any, without: tuple[str, ...] = ()) -> Any:
    kept = [each for each in schema["fields"] if each["name"] not in without]
    return {**schema, "fields": [*kept, *fields]}


def order(number: int, **more: Any) -> dict[str, Any]:
    from datetime import UTC, datetime
    from decimal import Decimal

    return {
        "id": number,
        "customer": f"c{number}",
        "amount": Decimal(number) / 4,
        "tags": ["a"] * number,
        "note": None if number % 2 else "odd",
        "at": datetime(2026, 1, 1, 0, 0, number, tzinfo=UTC),
        **more,
    }


def test_avro_values_are_columns(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("orders")
    topics.send(topic, [*avro(client, topic, ORDER, order(1), order(2)), None])
    frame = reader(spark, topics, registry, topic).load()
    assert frame.select("value.*").schema.simpleString() == (
        "struct<id:bigint,customer:string,amount:decimal(9,2),tags:array<string>,note:string,at:timestamp>"
    )
    rows = values(frame)
    assert rows[2] is None
    assert [(row["id"], str(row["amount"]), row["tags"], row["note"]) for row in rows[:2]] == [
        (1, "0.25", ["a"], None),
        (2, "0.50", ["a", "a"], "odd"),
    ]
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    shown = frame.select(fn.col("value.at").cast("string").alias("at")).collect()
    assert shown[0].at == "2026-01-01 00:00:01"


def test_each_record_is_read_with_the_schema_it_was_written_with(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("orders")
    renamed = {"name": "buyer", "type": "string", "aliases": ["customer"]}
    added = {"name": "paid", "type": "boolean", "default": True}
    newer = with_fields(ORDER, renamed, added, without=("customer", "note"))
    topics.send(topic, avro(client, topic, ORDER, order(1)))
    topics.send(topic, avro(client, topic, newer, order(2, buyer="b2", paid=False)))
    newest = values(reader(spark, topics, registry, topic).load())
    assert [(row["buyer"], row["paid"]) for row in newest] == [("c1", True), ("b2", False)]
    assert "note" not in newest[0]
    with pytest.raises(PySparkException, match="has no field 'customer'"):
        values(reader(spark, topics, registry, topic, valueSchemaVersion="1").load())
    mine = {
        "type": "record",
        "name": "Mine",
        "fields": [
            {"name": "amount", "type": ORDER["fields"][2]["type"]},  # type: ignore[index]
            {"name": "id", "type": "double"},
        ],
    }
    own = values(reader(spark, topics, registry, topic, valueSchema=json.dumps(mine)).load())
    assert [(list(row), row["id"]) for row in own] == [
        (["amount", "id"], 1.0),
        (["amount", "id"], 2.0),
    ]


def test_a_schema_of_the_reader_takes_some_columns_only(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("orders")
    topics.send(topic, avro(client, topic, ORDER, order(3)))
    some = reader(spark, topics, registry, topic).schema(
        "partition int, offset bigint, value struct<tags array<string>, id bigint>"
    )
    assert values(some.load()) == [{"tags": ["a", "a", "a"], "id": 3}]
    with pytest.raises(PySparkException, match="value has no field 'idd'"):
        reader(spark, topics, registry, topic).schema("value struct<idd bigint>").load().collect()
    with pytest.raises(PySparkException, match=r"value\.id has the type int64, not int32"):
        reader(spark, topics, registry, topic).schema("value struct<id int>").load().collect()


def test_what_cannot_be_decoded_follows_the_option(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic, dead = topics.create("orders"), topics.create("dead")
    good = avro(client, topic, ORDER, order(1), order(2))
    bad = [
        b"",
        b"text",
        encode_reference(999_999) + b"x",
        good[0][:-1],
        encode_reference(UUID(int=1)),
    ]
    topics.send(topic, [good[0], *bad, good[1]])
    with pytest.raises(PySparkException, match=r"offset 1 .* cannot be decoded"):
        values(reader(spark, topics, registry, topic).load())
    null = values(reader(spark, topics, registry, topic, onDecodeError="null").load())
    assert [row and row["id"] for row in null] == [1, *[None] * len(bad), 2]
    options = {"onDecodeError": "deadLetterTopic", "deadLetterTopic": dead}
    kept = values(reader(spark, topics, registry, topic, **options).load())
    assert [row["id"] for row in kept] == [1, 2]
    letters = topics.read(dead)
    assert sorted(each.value or b"" for each in letters) == sorted(bad)
    why = {each.value: dict(each.headers)["headrace.error"] or b"" for each in letters}
    assert b"unknown magic byte 0x74" in why[b"text"]
    assert b"the registry has no schema 999999" in why[bad[2]]
    assert b"at: the value ends within a number" in why[bad[3]]


def test_the_reference_may_stand_in_a_header(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("orders")
    framed = avro(client, topic, ORDER, order(1))[0]
    _, body = registry.ask("GET", f"/subjects/{topic}-value/versions/1")
    guid = encode_reference(UUID(body["guid"]))
    topics.send(topic, [framed])
    topics.send(topic, [framed[5:]], headers=[("other", b"x"), (VALUE_HEADER, guid)])
    topics.send(topic, [guid + framed[5:]])
    rows = values(reader(spark, topics, registry, topic).load())
    assert [row["customer"] for row in rows] == ["c1"] * 3


def test_a_registry_that_is_away_fails_the_query_and_loses_no_row(
    spark: SparkSession, topics: Topics, registry: RegistryProcess
) -> None:
    topic = topics.create("orders")
    topics.send(topic, [encode_reference(1) + b"x"])
    options = {
        "schemaRegistry": "http://127.0.0.1:9",
        "schemaRegistry.total.timeout.ms": "200",
        "valueSchema": json.dumps(ORDER),
        "onDecodeError": "null",
    }
    with pytest.raises(PySparkException, match="the schema registry does not answer"):
        values(reader(spark, topics, registry, topic, **options).load())


def test_the_sink_registers_a_schema_and_others_read(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("written")
    frame = spark.createDataFrame(
        [(1, "Ada", ["x"]), (2, None, [])], "id bigint not null, name string, tags array<string>"
    ).select(fn.col("id").alias("key"), fn.struct("id", "name", "tags").alias("value"))
    frame.write.format("headrace").mode("append").options(
        **{
            "kafka.bootstrap.servers": topics.bootstrap_servers,
            "topic": topic,
            "keyFormat": "avro",
            "valueFormat": "avro",
            "schemaRegistry": registry.url,
        }
    ).save()
    key, value = (
        client.get_latest_version(f"{topic}-key"),
        client.get_latest_version(f"{topic}-value"),
    )
    assert key.schema.schema_str == '"long"'
    assert json.loads(str(value.schema.schema_str))["fields"][:2] == [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
    ]
    read = AvroDeserializer(client)
    context = SerializationContext(topic, MessageField.VALUE)
    found = sorted(
        ((read(each.value, context) for each in topics.read(topic))), key=lambda row: row["id"]
    )
    assert found == [
        {"id": 1, "name": "Ada", "tags": ["x"]},
        {"id": 2, "name": None, "tags": []},
    ]


def test_the_sink_writes_with_a_given_schema(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("written")
    schema = json.dumps(with_fields(ORDER, without=("amount", "at")))
    rows = spark.sql("select named_struct('id', 7L, 'customer', 'x', 'note', 'n') as value")
    write(rows, topics, registry, topic, valueSchema=schema)
    context = SerializationContext(topic, MessageField.VALUE)
    read = AvroDeserializer(client)
    assert [read(each.value, context) for each in topics.read(topic)] == [
        {"id": 7, "customer": "x", "tags": [], "note": "n"}
    ]
    write(rows, topics, registry, topic, **{"schemaRegistry.use.latest.version": "true"})
    record_name = "shop.Order"
    by_record = {
        "valueSchema": schema,
        "schemaRegistry.value.subject.name.strategy": "RecordNameStrategy",
        "schemaRegistry.context": ".other",
    }
    write(rows, topics, registry, topic, **by_record)
    assert f":.other:{record_name}" in client.get_subjects(subject_prefix=":.other:")
    assert len(topics.read(topic)) == 3
    wrong = spark.sql("select named_struct('id', 7L) as value")
    with pytest.raises(PySparkException, match="has no column 'customer'"):
        write(wrong, topics, registry, topic, valueSchema=schema)
    unknown = {"schemaRegistry.auto.register.schemas": "false"}
    with pytest.raises(PySparkException, match="40403"):
        write(rows, topics, registry, topic, **unknown)
    nulls = spark.sql("select named_struct('id', cast(null as bigint), 'customer', 'x') as value")
    with pytest.raises(PySparkException, match="is null, and the schema does not allow it"):
        write(nulls, topics, registry, topic, valueSchema=schema)


def test_an_incompatible_schema_is_refused_before_anything_is_written(
    spark: SparkSession, topics: Topics, registry: RegistryProcess
) -> None:
    topic = topics.create("written")
    write(spark.sql("select named_struct('id', 7L) as value"), topics, registry, topic)
    changed = spark.sql("select named_struct('id', 'seven') as value")
    with pytest.raises(PySparkException, match="incompatible with an earlier schema"):
        write(changed, topics, registry, topic)
    assert len(topics.read(topic)) == 1


PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Sale {
  int64 id = 1;
  optional string note = 2;
  repeated string tags = 3;
  google.protobuf.Timestamp at = 4;
  oneof payment { string card = 5; int32 cash = 6; }
  Kind kind = 7;
  enum Kind { UNKNOWN = 0; ONLINE = 1; }
}
"""


def test_protobuf_in_both_directions(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("sales")
    rows = spark.sql(
        "select named_struct('id', 1L, 'note', cast(null as string), 'tags', array('a', 'b'),"
        " 'at', timestamp'2026-01-01 00:00:01 UTC', 'cash', 5, 'kind', 'ONLINE') as value"
        " union all select named_struct('id', 2L, 'note', '', 'tags', array(), 'at', null, 'cash', null, 'kind', 'UNKNOWN')"
    )
    write(rows, topics, registry, topic, valueFormat="protobuf", valueSchema=PROTO)
    _, body = registry.ask("GET", f"/subjects/{topic}-value/versions/1")
    assert body["schemaType"] == "PROTOBUF"
    message = compiled(PROTO, "shop.Sale")
    read = ProtobufDeserializer(message, {"use.deprecated.format": False}, client)
    context = SerializationContext(topic, MessageField.VALUE)
    found = sorted((read(each.value, context) for each in topics.read(topic)), key=lambda m: m.id)
    assert [(each.id, list(each.tags), each.WhichOneof("payment")) for each in found] == [
        (1, ["a", "b"], "cash"),
        (2, [], None),
    ]
    serializer = ProtobufSerializer(
        message,
        client,
        {
            "use.deprecated.format": False,
            "auto.register.schemas": False,
            "use.latest.version": True,
        },
    )
    topics.send(topic, [serializer(message(id=3, card="x", kind=9), context)])
    frame = reader(spark, topics, registry, topic, valueFormat="protobuf").load()
    assert frame.select("value.*").schema.simpleString() == (
        "struct<id:bigint,note:string,tags:array<string>,at:timestamp,kind:string,card:string,cash:int>"
    )
    rows_read = sorted(values(frame), key=lambda row: row["id"])
    assert [
        (row["id"], row["note"], row["card"], row["cash"], row["kind"]) for row in rows_read
    ] == [
        (1, None, None, 5, "ONLINE"),
        (2, "", None, None, "UNKNOWN"),
        (3, None, "x", None, "9"),
    ]


def compiled(text: str, name: str) -> Any:
    """A message class, as protoc's Python code would have it."""
    from headrace.schemas.columns.protobuf.messages import message_class, message_type, pin_protobuf
    from headrace.schemas.registry_client import Schema

    return message_class(message_type(pin_protobuf(Schema(text, "PROTOBUF"), (), name)))


def test_json_schema_in_both_directions(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    topic = topics.create("people")
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Person",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "born": {"type": "string", "format": "date"},
            "scores": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    serializer = JSONSerializer(json.dumps(schema), client)
    context = SerializationContext(topic, MessageField.VALUE)
    topics.send(topic, [serializer({"name": "Ada", "born": "1815-12-10"}, context)])
    rows = spark.sql("select named_struct('name', 'Bob', 'scores', array(1L, 2L)) as value")
    latest = {"schemaRegistry.use.latest.version": "true"}
    write(rows, topics, registry, topic, valueFormat="jsonschema", **latest)
    frame = reader(spark, topics, registry, topic, valueFormat="jsonschema").load()
    assert frame.select("value.*").schema.simpleString() == (
        "struct<name:string,born:date,scores:array<bigint>>"
    )
    assert [(row["name"], str(row["born"]), row["scores"]) for row in values(frame)] == [
        ("Ada", "1815-12-10", None),
        ("Bob", "None", [1, 2]),
    ]
    read = JSONDeserializer(json.dumps(schema), schema_registry_client=client)
    written = topics.read(topic)[1].value
    assert read(written, context) == {"name": "Bob", "scores": [1, 2]}
    wrong = spark.sql("select named_struct('scores', array(1L)) as value")
    with pytest.raises(PySparkException, match='"name" is a required property'):
        write(wrong, topics, registry, topic, valueFormat="jsonschema", **latest)


def test_a_derived_schema_of_each_language_is_read_again(
    spark: SparkSession, topics: Topics, registry: RegistryProcess
) -> None:
    rows = spark.sql(
        "select named_struct('id', 1L, 'at', timestamp'2026-01-01 00:00:01 UTC', 'm', map('k', 2)) as value"
    )
    for language in ("avro", "protobuf", "jsonschema"):
        topic = topics.create(f"derived-{language}")
        write(rows, topics, registry, topic, valueFormat=language)
        frame = reader(spark, topics, registry, topic, valueFormat=language).load()
        assert frame.select("value.*").collect() == rows.select("value.*").collect()


def test_two_topics_are_one_column_only_with_one_schema(
    spark: SparkSession, topics: Topics, registry: RegistryProcess
) -> None:
    one, other = topics.create("one"), topics.create("other")
    write(spark.sql("select named_struct('id', 7L) as value"), topics, registry, one)
    write(spark.sql("select named_struct('name', 'x') as value"), topics, registry, other)
    both = reader(spark, topics, registry, f"{one},{other}")
    with pytest.raises(PySparkException, match="have different schemas, and a column has one"):
        both.load()
    chosen = both.options(valueSubject=f"{one}-value", onDecodeError="skip").load()
    assert values(chosen) == [{"id": 7}]
    missing = reader(spark, topics, registry, topics.create("none"))
    with pytest.raises(PySparkException, match="the registry has no schema for the values"):
        missing.load()


def test_sql_finds_schemas_by_itself(
    spark: SparkSession, topics: Topics, registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    from headrace.pipelines.topic_sql import answer, question

    def ask(text: str) -> list[tuple[Any, ...]]:
        asked = question(
            text, bootstrap_servers=topics.bootstrap_servers, registry_url=registry.url
        )
        return [tuple(row) for row in answer(spark, asked).collect()]

    by_topic, by_record = topics.create("by-topic"), topics.create("by-record")
    rows = avro(client, by_topic, ORDER, order(1), order(2))
    topics.send(by_topic, [*rows, b"\x00damaged"])
    assert ask(f"select id, note, record.customer from topic({by_topic}) where id > 1") == [
        (2, "odd", "c2")
    ]
    write(
        spark.sql("select named_struct('id', 7L) as value"),
        topics,
        registry,
        by_record,
        **{"schemaRegistry.value.subject.name.strategy": "record"},
    )
    assert ask(f"select id, topic from topic({by_record})") == [(7, by_record)]
    text, empty = topics.create("text"), topics.create("empty")
    topics.send(text, ["\0\0 plain", "plain", '{"a":1}'], key="k")
    assert ask(f"select count(*), min(key) from topic({text})") == [(3, "k")]
    registry.register(f"{empty}-value", ORDER)
    assert ask(f"select id, customer from topic({empty})") == []
