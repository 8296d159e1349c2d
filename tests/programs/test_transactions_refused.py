"""A transactional producer is told at once that there are no transactions. docs/coming-from-kafka.md quotes what it prints."""

import pytest
from confluent_kafka import KafkaException, Producer

from headrace.testing.embedded_broker import EmbeddedBroker

LONG_S = 60


def test_librdkafka_gives_up_at_once_and_says_why() -> None:
    with EmbeddedBroker() as broker:
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "orders"}
        )
        with pytest.raises(KafkaException) as refused:
            producer.init_transactions(LONG_S)
    error = refused.value.args[0]
    assert error.fatal()
    assert not error.retriable()
    assert "Transactions are not offered by this broker." in error.str()
