"""confluent-kafka's registry client and its serializers against Headrace's registry and broker: register, read, evolve."""

import base64
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.schema_registry import (
    ConfigCompatibilityLevel,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
    ServerConfig,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess

pytestmark = pytest.mark.filterwarnings("ignore")  # of the client's own libraries

USER_1 = '{"type":"record","name":"User","fields":[{"name":"name","type":"string"}]}'
USER_2 = (
    '{"type":"record","name":"User","fields":[{"name":"name","type":"string"},'
    '{"name":"age","type":"int","default":-1}]}'
)
USER_BAD = '{"type":"record","name":"User","fields":[{"name":"name","type":"int"}]}'


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4()}"


def carried(broker: HeadraceProcess, topic: str, value: bytes) -> bytes:
    """The bytes after a way through the broker."""
    brokers = f"127.0.0.1:{broker.port}"
    producer = Producer({"bootstrap.servers": brokers})
    producer.produce(topic, value, partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "unused"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        assert message is not None
        assert message.error() is None
        found = message.value()
        assert found is not None
        return bytes(found)
    finally:
        consumer.close()


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def refusal(action: Any) -> int:
    with pytest.raises(SchemaRegistryError) as refused:
        action()
    code: int = refused.value.error_code
    return code


def test_the_client_registers_reads_and_deletes(client: SchemaRegistryClient, topic: str) -> None:
    first = client.register_schema(topic, Schema(USER_1, "AVRO"))
    assert client.register_schema(topic, Schema(USER_1, "AVRO")) == first
    second = client.register_schema(topic, Schema(USER_2, "AVRO"))
    assert client.get_schema(first).schema_str == USER_1
    assert client.get_versions(topic) == [1, 2]
    latest = client.get_latest_version(topic)
    assert (latest.schema_id, latest.version, latest.subject) == (second, 2, topic)
    assert client.lookup_schema(topic, Schema(USER_2, "AVRO")).version == 2
    assert topic in client.get_subjects()
    assert client.delete_version(topic, 2) == 2
    assert client.get_versions(topic) == [1]
    assert client.delete_subject(topic) == [1]
    assert client.delete_subject(topic, permanent=True) == [1, 2]
    assert refusal(lambda: client.get_versions(topic)) == 40401


def test_evolution_follows_the_level(client: SchemaRegistryClient, topic: str) -> None:
    client.register_schema(topic, Schema(USER_1, "AVRO"))
    assert client.test_compatibility(topic, Schema(USER_2, "AVRO"))
    assert not client.test_compatibility(topic, Schema(USER_BAD, "AVRO"))
    assert refusal(lambda: client.register_schema(topic, Schema(USER_BAD, "AVRO"))) == 40901
    assert refusal(lambda: client.register_schema(topic, Schema("{", "AVRO"))) == 42201
    client.set_config(topic, ServerConfig(compatibility=ConfigCompatibilityLevel.NONE))
    assert client.get_config(topic).compatibility_level == "NONE"
    client.register_schema(topic, Schema(USER_BAD, "AVRO"))
    assert client.get_versions(topic) == [1, 2]


def test_references(client: SchemaRegistryClient, topic: str) -> None:
    client.register_schema(f"{topic}-user", Schema(USER_1, "AVRO"))
    group = '{"type":"record","name":"Group","fields":[{"name":"members","type":{"type":"array","items":"User"}}]}'
    references = [SchemaReference("User", f"{topic}-user", 1)]
    registered = client.register_schema(topic, Schema(group, "AVRO", references))
    read = client.get_schema(registered)
    assert [each.subject for each in read.references or ()] == [f"{topic}-user"]
    assert refusal(lambda: client.delete_subject(f"{topic}-user")) == 42206


def test_avro_through_a_topic(
    client: SchemaRegistryClient, broker: HeadraceProcess, topic: str
) -> None:
    written = AvroSerializer(client, USER_1)({"name": "Ada"}, value_of(topic))
    assert written is not None
    value = carried(broker, topic, written)
    assert value[0] == 0
    assert AvroDeserializer(client)(value, value_of(topic)) == {"name": "Ada"}
    newer = AvroDeserializer(client, USER_2)(value, value_of(topic))
    assert newer == {"name": "Ada", "age": -1}
    AvroSerializer(client, USER_2)({"name": "Bob", "age": 3}, value_of(topic))
    assert client.get_versions(f"{topic}-value") == [1, 2]


def test_json_schema_through_a_topic(
    client: SchemaRegistryClient, broker: HeadraceProcess, topic: str
) -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "User",
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    serializer = JSONSerializer(json.dumps(schema), client)
    written = serializer({"name": "Ada"}, value_of(topic))
    assert written is not None
    value = carried(broker, topic, written)
    reader = JSONDeserializer(json.dumps(schema), schema_registry_client=client)
    assert reader(value, value_of(topic)) == {"name": "Ada"}
    wider = json.loads(json.dumps(schema))
    wider["properties"]["age"] = {"type": "integer"}
    JSONSerializer(json.dumps(wider), client)({"name": "Bob", "age": 3}, value_of(topic))
    assert client.get_versions(f"{topic}-value") == [1, 2]
    narrower = {**schema, "required": ["name", "size"]}
    with pytest.raises(SchemaRegistryError):
        JSONSerializer(json.dumps(narrower), client)({"name": "x", "size": 1}, value_of(topic))


def _user_type(name: str, fields: list[tuple[str, int, int]]) -> Any:
    """A message type as protoc's Python code has it, in a file of its own."""
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{name}.proto", package="people", syntax="proto3"
    )
    message = file.message_type.add(name="User")
    for field, number, kind in fields:
        message.field.add(name=field, number=number, type=kind, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("people.User"))


def test_protobuf_through_a_topic(
    client: SchemaRegistryClient, broker: HeadraceProcess, topic: str
) -> None:
    text, number = 9, 5
    user = _user_type("user1", [("name", 1, text)])
    settings = {"use.deprecated.format": False}
    written = ProtobufSerializer(user, client, settings)(user(name="Ada"), value_of(topic))
    assert written is not None
    value = carried(broker, topic, written)
    newer = _user_type("user2", [("name", 1, text), ("age", 2, number)])
    read = ProtobufDeserializer(newer, settings, client)(value, value_of(topic))
    assert (read.name, read.age) == ("Ada", 0)
    ProtobufSerializer(newer, client, settings)(newer(name="Bob", age=3), value_of(topic))
    assert client.get_versions(f"{topic}-value") == [1, 2]
    changed = _user_type("user3", [("name", 1, number)])
    with pytest.raises(SchemaRegistryError):
        ProtobufSerializer(changed, client, settings)(changed(name=1), value_of(topic))


def test_protobuf_text_is_answered_as_a_descriptor(
    client: SchemaRegistryClient, registry: RegistryProcess, topic: str
) -> None:
    schema = 'syntax = "proto3"; package p; message M { string a = 1; repeated int64 b = 2; }'
    registered = client.register_schema(topic, Schema(schema, "PROTOBUF"))
    status, body = registry.ask("GET", f"/schemas/ids/{registered}?format=serialized")
    assert status == 200
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(body["schema"]))
    assert file.message_type[0].name == "M"
    assert [each.name for each in file.message_type[0].field] == ["a", "b"]
