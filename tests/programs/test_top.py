"""`headrace top`: what it shows of a broker at work, in a pipe, as JSON and on a terminal."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from headrace.testing.embedded_cluster import EmbeddedCluster
from tests.programs.conftest import Headrace, Unique, command, parsed, run_command
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import bootstrap
from tests.support.interrupting import interrupt

ON_SCREEN, OFF_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


@pytest.fixture
def group(address: str, topic: str, unique: Unique) -> str:
    """A group that has read 40 of 100 records, which were written at least a second ago."""
    name = unique("behind")
    producer = Producer({"bootstrap.servers": address})
    for number in range(100):
        producer.produce(
            topic, str(number), partition=0, timestamp=int(time.time() * 1000) - 60_000
        )
    producer.flush()
    consumer = Consumer({"bootstrap.servers": address, "group.id": name})
    consumer.commit(offsets=[TopicPartition(topic, 0, 40)], asynchronous=False)
    consumer.close()
    return name


def test_lag_in_records_and_seconds(headrace: Headrace, group: str, topic: str) -> None:
    view = parsed(headrace("top", "--interval", "0.2", "--output", "json"))
    [row] = [each for each in view["groups"] if each["group_id"] == group]
    assert (row["lag"], row["topics"], row["members"]) == (60, [topic], 0)
    assert 60 <= row["lag_s"] < 120
    [shown] = [each for each in view["topics"] if each["topic"] == topic]
    assert (shown["partitions"], shown["records_in"], shown["under_replicated"]) == (2, 0, 0)
    assert shown["log_bytes"] > 0
    assert len(view["brokers"]) == 1
    assert not [each for each in view["topics"] if each["topic"].startswith("__")]


def test_a_pipe_gets_one_plain_view(headrace: Headrace, group: str, topic: str) -> None:
    text = headrace("top", "--interval", "0.2").stdout
    assert "\x1b" not in text
    assert "1 broker\n" in text
    assert f"  {topic} " in text
    assert f"  {group} " in text


@contextmanager
def somebody_writing(address: str, topic: str) -> Iterator[None]:
    stop = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
        while not stop.is_set():
            producer.produce(topic, b"x")
            producer.flush()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def test_records_per_second_of_what_is_written_meanwhile(
    headrace: Headrace, address: str, topic: str
) -> None:
    with somebody_writing(address, topic):
        view = parsed(headrace("top", "--output", "json"))
    [row] = [each for each in view["topics"] if each["topic"] == topic]
    assert row["records_in"] > 0
    assert row["bytes_in"] > 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_any_kafka_will_do(apache_kafka: ApacheKafka, protocol: str) -> None:
    """All that it asks for it asks in Kafka's protocol; what that does not tell is left open."""
    address, topic = bootstrap(apache_kafka), f"watched-by-{protocol}"
    make = command("topics", "--create", "--topic", topic, "--bootstrap-server", address)
    assert run_command(make).exit_code == 0
    reading = {
        "bootstrap.servers": address,
        "group.id": f"slow-{protocol}",
        "group.protocol": protocol,
    }
    consumer = Consumer({**reading, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([topic])
    try:
        with somebody_writing(address, topic):
            first = consumer.poll(30)
            assert first is not None
            consumer.commit(message=first, asynchronous=False)
            words = command("top", "--bootstrap-server", address)
            view = parsed(run_command([*words, "--output", "json"]))
            text = run_command(words)
    finally:
        consumer.close()
    [broker] = view["brokers"]
    assert (broker["address"], broker["is_controller"]) == (address, True)
    assert broker["log_bytes"] > 0
    [shown] = [each for each in view["topics"] if each["topic"] == topic]
    assert shown["records_in"] > 0
    assert shown["bytes_in"] > 0
    assert (shown["bytes_out"], broker["bytes_out"]) == (None, None)
    [group] = [each for each in view["groups"] if each["group_id"] == f"slow-{protocol}"]
    assert (group["members"], group["topics"]) == (1, [topic])
    assert group["lag"] > 0
    assert 0 < group["lag_s"] < 60
    assert group["lag_change_per_s"] > 0
    assert (text.exit_code, text.stderr) == (0, "")
    assert f"  slow-{protocol} " in text.stdout


def test_partitions_in_trouble_are_shown() -> None:
    with EmbeddedCluster(size=2, settings={"default.replication.factor": "2"}) as cluster:
        cluster.create_topic("orders", partitions=2)
        cluster.wait_until_in_sync()
        cluster.kill(2)
        cluster.wait_until(lambda state: state.partition("orders", 0).isr == (1,))  # type: ignore[union-attr] # it exists
        first = cluster.brokers[1].bootstrap_servers
        words = command("top", "--interval", "0.2", "--bootstrap-server", first)
        text = run_command(words).stdout
    assert "2 partitions in trouble" in text
    assert "under-replicated" in text


def test_a_terminal_is_given_back_after_ctrl_c(address: str) -> None:
    words = command("top", "--interval", "0.2", "--bootstrap-server", address)
    ended = interrupt(words, lambda text: text.count("headrace top") > 1)
    ended.check()
    assert ON_SCREEN in ended.written
    assert ended.written.rstrip().endswith(OFF_SCREEN)


def test_nobody_there_is_told() -> None:
    output = run_command(command("top", "--bootstrap-server", "127.0.0.1:1"))
    assert output.exit_code == 1
    assert "cannot reach a broker at 127.0.0.1:1" in output.stderr
