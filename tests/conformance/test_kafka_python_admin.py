"""kafka-python's admin client, which asks with other versions than librdkafka does."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from tests.conformance.clients.confluent import Confluent
from tests.conformance.clients.kafka_python import KafkaPython, close_quietly
from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import BASE_TIMESTAMP_MS, numbered
from tests.conformance.test_confluent_kafka_admin import wait_until
from tests.support.broker import BrokerUnderTest

Unique = Callable[[str], str]


@pytest.fixture
def kafka_admin(address: str) -> Iterator[Any]:
    from kafka import KafkaAdminClient

    client = KafkaAdminClient(bootstrap_servers=address)
    yield client
    close_quietly(client)


def test_topics_are_created_described_grown_and_deleted(
    broker: BrokerUnderTest, kafka_admin: Any, unique: Unique
) -> None:
    topic, replicas = unique("kafka-python-topic"), len(broker.ports)
    kafka_admin.create_topics({topic: {"num_partitions": 2, "replication_factor": replicas}})
    wait_until(lambda: topic in kafka_admin.list_topics())
    kafka_admin.create_partitions({topic: 3})

    def partitions() -> list[Any]:
        return list(kafka_admin.describe_topics([topic])[0]["partitions"])

    wait_until(lambda: len(partitions()) == 3)
    assert [part["partition_index"] for part in partitions()] == [0, 1, 2]
    for part in partitions():
        assert part["leader_id"] == part["replica_nodes"][0]
        assert sorted(part["replica_nodes"]) == sorted(broker.ports)
    [described] = kafka_admin.describe_topics([topic])
    [again] = kafka_admin.describe_topics([UUID(described["topic_id"])])
    assert again["name"] == topic
    kafka_admin.delete_topics([topic])


def test_bad_requests_earn_their_errors(kafka_admin: Any, make_topic: MakeTopic) -> None:
    from kafka import errors

    topic = make_topic("kafka-python-errors")
    with pytest.raises(errors.TopicAlreadyExistsError):
        kafka_admin.create_topics([topic])
    with pytest.raises(errors.InvalidTopicError):
        kafka_admin.create_topics(["not/allowed"])
    with pytest.raises(errors.UnknownTopicOrPartitionError):
        kafka_admin.delete_topics(["never-created"])
    with pytest.raises(errors.InvalidPartitionsError):
        kafka_admin.create_partitions({topic: 1})


def test_offsets_are_listed_by_every_special_time(
    kafka_admin: Any, address: str, make_topic: MakeTopic
) -> None:
    from kafka import TopicPartition

    topic = make_topic("kafka-python-offsets")
    Confluent().produce(address, topic, 0, numbered(5), codec="none")
    partition = TopicPartition(topic, 0)
    kafka_admin.delete_records({partition: 2})
    times = {-1: 5, -2: 2, -4: 2, BASE_TIMESTAMP_MS: 2}
    found = {
        time: kafka_admin.list_partition_offsets({partition: time})[partition].offset
        for time in times
    }
    assert found == times


def test_groups_show_their_offsets(
    kafka_admin: Any, address: str, make_topic: MakeTopic, unique: Unique
) -> None:
    from kafka import TopicPartition

    topic, group = make_topic("kafka-python-groups"), unique("kafka-python-group")
    Confluent().produce(address, topic, 0, numbered(5), codec="none")
    KafkaPython().consume_in_group(address, topic, group, 3)
    offsets = kafka_admin.list_group_offsets({group: None})[group]
    assert offsets[TopicPartition(topic, 0)].offset == 3
    assert group in {found["group_id"] for found in kafka_admin.list_groups()}
    assert kafka_admin.describe_groups([group])[group]["group_state"] == "Empty"
    kafka_admin.delete_groups([group])
    assert group not in {found["group_id"] for found in kafka_admin.list_groups()}


def test_the_cluster_and_its_log_directories_are_described(
    broker: BrokerUnderTest, kafka_admin: Any, make_topic: MakeTopic
) -> None:
    topic = make_topic("kafka-python-log-dirs")
    cluster = kafka_admin.describe_cluster()
    assert sorted(node["broker_id"] for node in cluster["brokers"]) == sorted(broker.ports)
    assert topic in str(kafka_admin.describe_log_dirs())
