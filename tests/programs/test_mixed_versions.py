"""Brokers of two versions in one cluster: a newer controller publishes a kind of change that older brokers do not know."""

import time
from collections.abc import Callable

import msgspec
import pytest
from confluent_kafka import KafkaError, Producer

from headrace.broker.internal_apis import pull_changes
from headrace.controller.changes import ChangeBatch, encode
from headrace.testing.embedded_cluster import EmbeddedCluster

PATIENCE_S = 30.0


def encode_as_a_later_version(batch: ChangeBatch) -> bytes:
    """The batch with fields and a kind of change that this version does not have."""
    content = msgspec.json.decode(encode(batch))
    content["format"] = 2
    for change in content["changes"]:
        change["field_of_later"] = 1
    content["changes"].append({"type": "of_later", "name": "whatever"})
    return msgspec.json.encode(content)


def encode_with_a_skippable_kind(batch: ChangeBatch) -> bytes:
    """As a later version, for which older brokers need not know what is new."""
    content = msgspec.json.decode(encode_as_a_later_version(batch))
    content["skippable"] = ["of_later"]
    return msgspec.json.encode(content)


def encode_with_more_fields(batch: ChangeBatch) -> bytes:
    """The batch with fields that this version does not have."""
    content = msgspec.json.decode(encode(batch))
    for change in content["changes"]:
        change["field_of_later"] = 1
    return msgspec.json.encode(content)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def produce(cluster: EmbeddedCluster, topic: str) -> None:
    """One record to each partition, whichever broker leads it, and on all of its replicas."""
    delivered: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for index in range(3):
        producer.produce(
            topic, b"value", partition=index, on_delivery=lambda error, _: delivered.append(error)
        )
    assert producer.flush(PATIENCE_S) == 0
    assert delivered == [None] * 3


def test_older_brokers_outlive_a_newer_controller(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """They serve what they know, say what to do, and catch up as soon as they can read the changes."""
    with EmbeddedCluster() as cluster:
        cluster.create_topic("known", partitions=3)
        cluster.wait_until_in_sync()
        newest = cluster.controller()
        older = set(cluster.brokers) - {newest}
        with monkeypatch.context() as patch:
            patch.setattr(pull_changes, "encode", encode_as_a_later_version)
            cluster.brokers[newest].create_topic("unheard-of", 1, 1)
            wait_until(lambda: caplog.text.count("this version cannot read") >= len(older))
            assert f"broker {newest}, the controller, publishes changes" in caplog.text
            assert "of_later" in caplog.text
            produce(cluster, "known")
            for broker_id in older:
                assert cluster.brokers[broker_id].is_running
                topics = cluster.brokers[broker_id].look(lambda state: set(state.topics))
                assert "unheard-of" not in topics
        cluster.wait_until(lambda state: "unheard-of" in state.topics)
        assert set(cluster.running) == set(cluster.brokers)


@pytest.mark.parametrize("later", [encode_with_more_fields, encode_with_a_skippable_kind])
def test_older_brokers_read_changes_that_a_newer_controller_lets_them_read(
    later: Callable[[ChangeBatch], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """More fields, and kinds that they may skip: they hear of topics, leaders and configs."""
    with EmbeddedCluster() as cluster:
        monkeypatch.setattr(pull_changes, "encode", later)
        cluster.create_topic("t", partitions=3)
        cluster.wait_until_in_sync()
        produce(cluster, "t")
        victim = next(each for each in cluster.brokers if each != cluster.controller())
        assert victim in {cluster.partition("t", index).leader for index in range(3)}
        cluster.kill(victim)
        produce(cluster, "t")
        cluster.start(victim)
        cluster.wait_until_in_sync()
