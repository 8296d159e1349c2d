"""Keys and values with schemas of a registry, written and read through the proxy and by confluent-kafka's serializers."""

import json
import time
import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.support.registry_process import RegistryProcess
from tests.support.rest_process import RestProcess, base64_text

pytestmark = pytest.mark.filterwarnings("ignore")  # of the client's own libraries

Json = Any

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"]},
        ],
    }
)
PROTO = 'syntax = "proto3"; package shop; message Order { int64 id = 1; string note = 2; }'
JSON_SCHEMA = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
        "additionalProperties": False,
        "required": ["id"],
    }
)


def stored(brokers: str, topic: str) -> Any:
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "unused"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        return message
    finally:
        consumer.close()


def produced(proxy: RestProcess, topic: str, record: Json) -> Json:
    [answer] = proxy.produce(topic, record)
    assert answer["error_code"] == 200, answer
    return answer


def test_avro_with_a_schema_in_the_request(
    proxy: RestProcess, registry: RegistryProcess, brokers: str, topic: str
) -> None:
    data = {"id": 5, "note": {"string": "x"}}
    value = {"type": "AVRO", "schema": ORDER, "data": data}
    answer = produced(proxy, topic, {"key": {"type": "STRING", "data": "k"}, "value": value})
    _, latest = registry.ask("GET", f"/subjects/{topic}-value/versions/latest")
    payload = stored(brokers, topic).value()
    assert answer["value"] == {
        "type": "AVRO",
        "size": len(payload),
        "subject": f"{topic}-value",
        "schema_id": latest["id"],
        "schema_version": 1,
    }
    with SchemaRegistryClient({"url": registry.url}) as client:
        deserialize = AvroDeserializer(client)
        context = SerializationContext(topic, MessageField.VALUE)
        assert deserialize(payload, context) == {"id": 5, "note": "x"}
    # By id, by version, as the newest of the subject: the same schema.
    for chosen in (
        {"schema_id": latest["id"]},
        {"schema_version": 1},
        {"subject": f"{topic}-value", "schema_version": 1},
        {"subject_name_strategy": "TOPIC_NAME"},
        {},
    ):
        again = produced(proxy, topic, {"value": {**chosen, "data": data}})
        assert again["value"] == answer["value"]


def test_the_newest_schema_is_used_soon_after_it_was_registered(
    proxy: RestProcess, registry: RegistryProcess, topic: str
) -> None:
    registry.ask("PUT", f"/config/{topic}-value", {"compatibility": "NONE"})
    registry.register(f"{topic}-value", '"string"')
    assert produced(proxy, topic, {"value": {"data": "a"}})["value"]["schema_version"] == 1
    registry.register(f"{topic}-value", '"long"')
    deadline = time.monotonic() + 60
    while True:
        [answer] = proxy.produce(topic, {"value": {"data": 5}})
        if answer["error_code"] == 200:
            break
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert answer["value"]["schema_version"] == 2


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("RECORD_NAME", "shop.Order"), ("TOPIC_RECORD_NAME", "{topic}-shop.Order")],
)
@pytest.mark.parametrize(("kind", "schema"), [("AVRO", ORDER), ("PROTOBUF", PROTO)])
def test_subjects_named_for_the_record(
    proxy: RestProcess, topic: str, strategy: str, subject: str, kind: str, schema: str
) -> None:
    data = {"id": 1, "note": None} if kind == "AVRO" else {"id": "1"}
    if strategy == "RECORD_NAME":  # the name is shared by all tests: one of its own
        name = f"N{uuid.uuid4().hex}"
        schema, subject = schema.replace("Order", name), subject.replace("Order", name)
    value = {"type": kind, "schema": schema, "subject_name_strategy": strategy, "data": data}
    answer = produced(proxy, topic, {"value": value})
    assert answer["value"]["subject"] == subject.format(topic=topic)
    [refused] = proxy.produce(topic, {"value": {"subject_name_strategy": strategy, "data": data}})
    assert refused["error_code"] == 400
    assert "without schema_id or schema" in refused["message"]


def test_protobuf_and_json_schema_are_read_by_others(
    proxy: RestProcess, registry: RegistryProcess, brokers: str
) -> None:
    with SchemaRegistryClient({"url": registry.url}) as client:
        topic = f"proto-{uuid.uuid4()}"
        proxy.create_topic(topic)
        value: Json = {"type": "PROTOBUF", "schema": PROTO, "data": {"id": "7", "note": "n"}}
        produced(proxy, topic, {"value": value})
        message_type = protobuf_class()
        read = ProtobufDeserializer(message_type, {"use.deprecated.format": False}, client)(
            stored(brokers, topic).value(), SerializationContext(topic, MessageField.VALUE)
        )
        assert (read.id, read.note) == (7, "n")
        topic = f"json-{uuid.uuid4()}"
        proxy.create_topic(topic)
        value = {"type": "JSONSCHEMA", "schema": JSON_SCHEMA, "data": {"id": 7}}
        produced(proxy, topic, {"value": value})
        read = JSONDeserializer(JSON_SCHEMA, schema_registry_client=client)(
            stored(brokers, topic).value(), SerializationContext(topic, MessageField.VALUE)
        )
        assert read == {"id": 7}


def protobuf_class() -> Any:
    """The class of the message in PROTO, as generated code would have it."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"order-{uuid.uuid4()}.proto", package="shop", syntax="proto3"
    )
    message = file.message_type.add(name="Order")
    field = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="id", number=1, type=field.TYPE_INT64, label=field.LABEL_OPTIONAL)
    message.field.add(name="note", number=2, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ({"type": "AVRO", "schema": ORDER, "data": {"id": "x"}}, 400, "Bad Request"),
        ({"type": "AVRO", "schema": ORDER, "data": {"id": 1}}, 400, "field name not found: note"),
        ({"type": "JSONSCHEMA", "schema": JSON_SCHEMA, "data": {}}, 400, "required"),
        ({"type": "PROTOBUF", "schema": PROTO, "data": {"nope": 1}}, 400, "nope"),
        ({"type": "AVRO", "schema": "nope", "data": 1}, 422, "Error: 42205 : Invalid schema:"),
        ({"type": "PROTOBUF", "schema": "message", "data": {}}, 422, "Error: 42205"),
        ({"schema": ORDER, "data": 1}, 400, "Bad Request: Unsupported argument"),
        ({"schema_id": 999999, "data": 1}, 422, "Error: 42207 : Error serializing message."),
        ({"schema_version": 9, "data": 1}, 422, "Error: 42207"),
        ({"subject": "nobody", "data": 1}, 422, "latest schema version. subject = nobody"),
    ],
)
def test_what_does_not_fit_or_is_not_there(
    proxy: RestProcess, topic: str, value: Json, code: int, message: str
) -> None:
    [answer] = proxy.produce(topic, {"value": value})
    assert answer["error_code"] == code, answer
    assert message in answer["message"]
    assert "\n" not in answer["message"]


V2_CASES = [
    ("avro", ORDER, {"id": 1, "note": {"string": "é"}}, {"id": 1, "note": {"string": "é"}}),
    ("protobuf", PROTO, {"id": "3"}, {"id": "3", "note": ""}),
    ("jsonschema", JSON_SCHEMA, {"id": 2, "note": "n"}, {"id": 2, "note": "n"}),
]


@pytest.mark.parametrize(("kind", "schema", "written", "read"), V2_CASES)
def test_version_2_writes_and_reads(
    proxy: RestProcess, topic: str, group: str, kind: str, schema: str, written: Json, read: Json
) -> None:
    body: Json = {"value_schema": schema, "records": [{"value": written}]}
    if kind == "avro":
        body |= {"key_schema": '"string"', "records": [{"key": "k", "value": written}]}
    status, answer = proxy.produce_v2(topic, kind, body)
    assert status == 200, answer
    assert answer["offsets"][0]["offset"] == 0
    number = answer["value_schema_id"]
    assert isinstance(number, int)
    body = {"value_schema_id": number, "records": [{"value": written}, {"value": written}]}
    status, answer = proxy.produce_v2(topic, kind, body)
    assert (status, answer["value_schema_id"]) == (200, number)
    consumer = proxy.consumer(group, format=kind)
    consumer.assign((topic, 0))
    records = consumer.records(3)
    assert [each["value"] for each in records] == [read] * 3
    assert records[0]["key"] == ("k" if kind == "avro" else None)
    consumer.delete()


def test_version_2_needs_a_schema(proxy: RestProcess, topic: str) -> None:
    status, answer = proxy.produce_v2(topic, "avro", {"records": [{"value": 1}]})
    assert (status, answer) == (
        422,
        {
            "error_code": 42202,
            "message": "Request includes values but does not include value schema",
        },
    )
    body: Json = {"value_schema": '"int"', "records": [{"key": 1, "value": 1}]}
    status, answer = proxy.produce_v2(topic, "avro", body)
    assert (status, answer["error_code"]) == (422, 42201)
    body = {"value_schema_id": 999999, "records": [{"value": 1}]}
    status, answer = proxy.produce_v2(topic, "avro", body)
    assert (status, answer["error_code"]) == (422, 42207)
    # A tombstone needs none.
    body = {"key_schema": '"int"', "records": [{"key": 1, "value": None}]}
    assert proxy.produce_v2(topic, "avro", body)[0] == 200


@pytest.mark.parametrize("is_in_header", [False, True])
def test_what_others_wrote_is_read(
    proxy: RestProcess,
    registry: RegistryProcess,
    brokers: str,
    topic: str,
    group: str,
    is_in_header: bool,
) -> None:
    config: Json = {"schema.id.serializer": header_schema_id_serializer} if is_in_header else {}
    order = protobuf_class()
    with SchemaRegistryClient({"url": registry.url}) as client:
        serializers: Json = {
            "avro": (AvroSerializer(client, ORDER, conf=config), {"id": 1, "note": "n"}),
            "jsonschema": (JSONSerializer(JSON_SCHEMA, client, conf=config), {"id": 1}),
            "protobuf": (
                ProtobufSerializer(order, client, {"use.deprecated.format": False, **config}),
                order(id=1, note="n"),
            ),
        }
        expected: Json = {
            "avro": {"id": 1, "note": {"string": "n"}},
            "jsonschema": {"id": 1},
            "protobuf": {"id": "1", "note": "n"},
        }
        for kind, (serialize, value) in serializers.items():
            name = f"{topic}-{kind}"
            proxy.create_topic(name)
            headers: list[tuple[str, str | bytes | None]] = []
            data = serialize(value, SerializationContext(name, MessageField.VALUE, headers))
            producer = Producer({"bootstrap.servers": brokers})
            producer.produce(name, data, headers=headers)
            assert producer.flush(30) == 0
            consumer = proxy.consumer(group, format=kind)
            consumer.assign((name, 0))
            assert [each["value"] for each in consumer.records(1)] == [expected[kind]]
            consumer.delete()


def test_bytes_without_a_schema_are_told_with_their_place(
    proxy: RestProcess, topic: str, group: str
) -> None:
    produced(proxy, topic, {"value": {"type": "STRING", "data": "plain"}})
    consumer = proxy.consumer(group, format="avro")
    consumer.assign((topic, 0))
    status, answer = consumer.read()
    assert (status, answer["error_code"]) == (500, 50002)
    assert f"{topic}-0 at offset 0" in answer["message"]
    assert "magic byte" in answer["message"]
    consumer.delete()


def test_a_record_whose_schema_is_not_known_is_told_with_its_place(
    proxy: RestProcess, topic: str, group: str
) -> None:
    data = base64_text(b"\0" + (999_999).to_bytes(4, "big") + b"\2")
    produced(proxy, topic, {"value": {"type": "BINARY", "data": data}})
    produced(proxy, topic, {"value": {"type": "AVRO", "schema": '"int"', "data": 1}})
    consumer = proxy.consumer(group, format="avro")
    consumer.assign((topic, 0))
    for _ in range(2):
        status, answer = consumer.read()
        assert (status, answer["error_code"]) == (500, 50002)
        assert f"{topic}-0 at offset 0" in answer["message"]
        assert "schemaId = 999999" in answer["message"]
    place = {"topic": topic, "partition": 0, "offset": 1}
    consumer.do("POST", "/positions", {"offsets": [place]})
    assert [each["value"] for each in consumer.records(1)] == [1]
    consumer.delete()
