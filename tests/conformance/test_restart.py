"""A broker that goes down in the middle of load, politely or by kill -9, loses nothing that it acknowledged."""

import threading
import time
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.conformance.clients.confluent import Confluent
from tests.conformance.samples import numbered
from tests.support.broker import BrokerUnderTest, bootstrap

RECORDS = 6000
UNDER_WAY = 500  # so that the load lasts beyond the restarts
HOW: dict[str, Callable[[BrokerUnderTest], None]] = {
    "stop": lambda broker: broker.stop(),
    "kill": lambda broker: broker.kill(),
}


class Load:
    """An idempotent producer in a thread of its own, and what was acknowledged to it."""

    def __init__(self, address: str, topic: str) -> None:
        self.acknowledged: dict[bytes, int] = {}
        self.errors: list[KafkaError] = []
        self._topic = topic
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 20,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in range(RECORDS):
            self._producer.produce(
                self._topic, value=b"%d" % number, partition=0, on_delivery=self._delivered
            )
            self._producer.poll(0)
            while number - len(self.acknowledged) > UNDER_WAY and not self.errors:
                self._producer.poll(0.05)
        self._producer.flush(60)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        offset, value = message.offset(), message.value()
        if error is not None:
            self.errors.append(error)
        else:
            assert offset is not None
            assert value is not None
            self.acknowledged[value] = offset

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + 60
        while len(self.acknowledged) < count:
            assert time.monotonic() < deadline, f"{len(self.acknowledged)} acknowledged in time"
            time.sleep(0.005)

    def finish(self) -> None:
        self._thread.join()
        assert len(self._producer) == 0, "not everything was delivered"


@pytest.mark.parametrize("how", HOW)
def test_nothing_acknowledged_is_lost_or_doubled(own_broker: BrokerUnderTest, how: str) -> None:
    address = bootstrap(own_broker)
    topic = make_topic(address, "loaded")
    load = Load(address, topic)
    try:
        for acknowledged in (500, 2000):
            load.wait_for(acknowledged)
            HOW[how](own_broker)
            own_broker.start()
    finally:
        load.finish()
    assert not load.errors
    received = Confluent().consume(address, topic, RECORDS)
    values = [found.record.value for found in received]
    assert values == [b"%d" % number for number in range(RECORDS)]
    assert {found.record.value: found.offset for found in received} == load.acknowledged


@pytest.mark.parametrize("how", HOW)
def test_topics_configs_and_groups_survive(own_broker: BrokerUnderTest, how: str) -> None:
    address = bootstrap(own_broker)
    topic = make_topic(address, "kept", config={"retention.ms": "123456789"})
    Confluent().produce(address, topic, 0, numbered(10), codec="lz4")
    Confluent().consume_in_group(address, topic, "kept-group", 4)
    admin = AdminClient({"bootstrap.servers": address})
    part = TopicPartition(topic, 0, 2)
    admin.delete_records([part])[part].result(30)
    before = admin.list_topics(topic, timeout=30).topics[topic]
    HOW[how](own_broker)
    own_broker.start()
    after = admin.list_topics(topic, timeout=30).topics[topic]
    assert list(after.partitions) == list(before.partitions)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(30)
    assert configs["retention.ms"].value == "123456789"
    resumed = Confluent().consume_in_group(address, topic, "kept-group", 6)
    assert [found.offset for found in resumed] == [4, 5, 6, 7, 8, 9]


def make_topic(address: str, name: str, config: dict[str, str] | None = None) -> str:
    admin = AdminClient({"bootstrap.servers": address})
    topic = NewTopic(name, 1, config=config or {})
    admin.create_topics([topic])[name].result(30)
    return name
