"""librdkafka's admin client: topics, configs, records, groups, and the errors that bad requests earn."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

# Public in `confluent_kafka.admin`, but not exported there in a way that a type checker accepts.
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._metadata import TopicMetadata
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.conformance.clients.confluent import Confluent
from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import numbered
from tests.support.broker import BrokerUnderTest

TIMEOUT_S = 30
Unique = Callable[[str], str]


def error_name(call: Callable[[], object]) -> str:
    """The name of the error with which the broker refuses this call."""
    with pytest.raises(KafkaException) as refused:
        call()
    return str(refused.value.args[0].name())


def create(admin: AdminClient, topic: NewTopic, *, validate_only: bool = False) -> None:
    admin.create_topics([topic], validate_only=validate_only)[topic.topic].result(TIMEOUT_S)


def test_a_topic_is_created_described_grown_and_deleted(
    broker: BrokerUnderTest, admin: AdminClient, unique: Unique
) -> None:
    topic, brokers = unique("life-of-a-topic"), sorted(broker.ports)
    create(admin, NewTopic(topic, 2, len(brokers), config={"retention.ms": "1234"}))
    wait_until(lambda: topic in topics_of(admin))
    partitions = topics_of(admin)[topic].partitions
    assert sorted(partitions) == [0, 1]
    for partition in partitions.values():
        assert partition.leader == partition.replicas[0]
        assert sorted(partition.replicas) == sorted(partition.isrs) == brokers
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(TIMEOUT_S)
    # Kafka answers when the controller has decided; its brokers hear of it a moment later.
    wait_until(lambda: len(topics_of(admin)[topic].partitions) == 5)
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)
    wait_until(lambda: topic not in topics_of(admin))


def topics_of(admin: AdminClient) -> dict[str, TopicMetadata]:
    topics: dict[str, TopicMetadata] = admin.list_topics(timeout=TIMEOUT_S).topics
    return topics


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not happened():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.05)


def test_validation_creates_nothing(admin: AdminClient, unique: Unique) -> None:
    topic = unique("only-validated")
    create(admin, NewTopic(topic, 1, 1), validate_only=True)
    assert topic not in admin.list_topics(timeout=TIMEOUT_S).topics


@pytest.mark.parametrize(
    ("name", "partitions", "replication_factor", "config", "error"),
    [
        ("not/allowed", 1, 1, {}, "TOPIC_EXCEPTION"),
        ("..", 1, 1, {}, "TOPIC_EXCEPTION"),
        ("x" * 250, 1, 1, {}, "TOPIC_EXCEPTION"),
        ("no-partitions", 0, 1, {}, "INVALID_PARTITIONS"),
        ("too-many-replicas", 1, 4, {}, "INVALID_REPLICATION_FACTOR"),
        ("unknown-config", 1, 1, {"no.such.config": "1"}, "INVALID_CONFIG"),
        ("bad-config", 1, 1, {"retention.ms": "soon"}, "INVALID_CONFIG"),
    ],
)
def test_a_bad_topic_is_refused(
    admin: AdminClient,
    name: str,
    partitions: int,
    replication_factor: int,
    config: dict[str, str],
    error: str,
) -> None:
    topic = NewTopic(name, partitions, replication_factor, config=config)
    assert error_name(lambda: create(admin, topic)) == error


def test_requests_about_the_wrong_topic_are_refused(
    admin: AdminClient, make_topic: MakeTopic
) -> None:
    topic = make_topic("exists", partitions=3)
    assert error_name(lambda: create(admin, NewTopic(topic, 1, 1))) == "TOPIC_ALREADY_EXISTS"
    fewer, same = (
        admin.create_partitions([NewPartitions(topic, count)])[topic] for count in (2, 3)
    )
    assert error_name(lambda: fewer.result(TIMEOUT_S)) == "INVALID_PARTITIONS"
    assert error_name(lambda: same.result(TIMEOUT_S)) == "INVALID_PARTITIONS"
    deleted = admin.delete_topics(["never-created"])["never-created"]
    assert error_name(lambda: deleted.result(TIMEOUT_S)) == "UNKNOWN_TOPIC_OR_PART"


def test_topic_configs_are_altered_and_described(admin: AdminClient, make_topic: MakeTopic) -> None:
    topic = make_topic("configured", config={"retention.ms": "1000"})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    before = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    assert (before["retention.ms"].value, before["retention.ms"].source) == ("1000", 1)
    assert (before["cleanup.policy"].value, before["cleanup.policy"].is_default) == ("delete", True)
    resource.add_incremental_config(
        ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    )
    resource.add_incremental_config(
        ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE)
    )
    resource.add_incremental_config(
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND)
    )
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    plain = ConfigResource(ResourceType.TOPIC, topic)
    after = admin.describe_configs([plain])[plain].result(TIMEOUT_S)
    assert after["max.message.bytes"].value == "2000"
    assert after["cleanup.policy"].value == "delete,compact"
    assert (after["retention.ms"].value, after["retention.ms"].source) == ("604800000", 5)


def test_the_broker_describes_its_configs(admin: AdminClient) -> None:
    resource = ConfigResource(ResourceType.BROKER, "1")
    configs = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    assert configs["offsets.topic.num.partitions"].value == "4"
    assert configs["log.retention.hours"].value == "168"
    assert configs["node.id"].is_read_only
    assert not configs["log.retention.ms"].is_read_only


def test_records_are_deleted_up_to_an_offset(
    admin: AdminClient, address: str, make_topic: MakeTopic
) -> None:
    topic = make_topic("deleted-records")
    Confluent().produce(address, topic, 0, numbered(10), codec="none")
    partition = TopicPartition(topic, 0, 6)
    deleted = admin.delete_records([partition])[partition].result(TIMEOUT_S)
    assert deleted.low_watermark == 6
    received = Confluent().consume(address, topic, 4)
    assert [found.offset for found in received] == [6, 7, 8, 9]
    beyond = TopicPartition(topic, 0, 11)
    refused = admin.delete_records([beyond])[beyond]
    assert error_name(lambda: refused.result(TIMEOUT_S)) == "OFFSET_OUT_OF_RANGE"


def test_offsets_are_listed(admin: AdminClient, address: str, make_topic: MakeTopic) -> None:
    topic = make_topic("listed-offsets")
    Confluent().produce(address, topic, 0, numbered(10), codec="none")
    partition = TopicPartition(topic, 0)
    spec: Any = OffsetSpec  # its functions have no annotations
    specs = {"earliest": spec.earliest(), "latest": spec.latest()}
    specs["max_timestamp"] = spec.max_timestamp()
    found = {
        name: admin.list_offsets({partition: spec})[partition].result(TIMEOUT_S).offset
        for name, spec in specs.items()
    }
    assert found == {"earliest": 0, "latest": 10, "max_timestamp": 0}


def test_groups_are_listed_described_and_deleted(
    admin: AdminClient, address: str, make_topic: MakeTopic, unique: Unique
) -> None:
    topic, group = make_topic("grouped"), unique("described-group")
    Confluent().produce(address, topic, 0, numbered(3), codec="none")
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        assert len(consumer.consume(3, timeout=TIMEOUT_S)) == 3
        consumer.commit(asynchronous=False)
        described = admin.describe_consumer_groups([group])[group].result(TIMEOUT_S)
        assert described.state is ConsumerGroupState.STABLE
        [member] = described.members
        assert [tp.topic for tp in member.assignment.topic_partitions] == [topic]
        deleted = admin.delete_consumer_groups([group])[group]
        assert error_name(lambda: deleted.result(TIMEOUT_S)) == "NON_EMPTY_GROUP"
    finally:
        consumer.close()
    listed = admin.list_consumer_groups().result(TIMEOUT_S).valid
    assert group in {found.group_id for found in listed}
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)
    gone = admin.delete_consumer_groups([group])[group]
    assert error_name(lambda: gone.result(TIMEOUT_S)) == "GROUP_ID_NOT_FOUND"


def test_the_cluster_describes_itself(broker: BrokerUnderTest, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(TIMEOUT_S)
    assert described.cluster_id
    assert described.controller.id in broker.ports
    assert {node.id: (node.host, node.port) for node in described.nodes} == {
        number: ("127.0.0.1", port) for number, port in broker.ports.items()
    }
