"""Kafka's own TransactionalMessageCopier while brokers are killed and started again: every record arrives exactly once.

HEADRACE_ROUNDS says how many brokers are killed.
"""

import os
import subprocess
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from tests.support import kafka_tools
from tests.support.cluster_process import ClusterProcess

SOURCE: Final = "source"
TARGET: Final = "target"
STATE_TOPIC: Final = "__transaction_state"
ROUNDS: Final = int(os.environ.get("HEADRACE_ROUNDS", "3"))
RECORDS: Final = 8_000 * ROUNDS
LONG_S: Final = 60
COPY_S: Final = 60 * ROUNDS


def fill(cluster: ClusterProcess) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    for number in range(RECORDS):
        while True:
            try:
                producer.produce(SOURCE, str(number), partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(LONG_S) == 0


def end_offset(cluster: ClusterProcess) -> int:
    reader = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "watch", "log_level": 0})
    try:
        return int(reader.get_watermark_offsets(TopicPartition(TARGET, 0), timeout=LONG_S)[1])
    finally:
        reader.close()


def read_committed(cluster: ClusterProcess) -> list[int]:
    reader = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "auditor",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    found: list[int] = []
    try:
        reader.assign([TopicPartition(TARGET, 0, 0)])
        while True:
            message = reader.poll(LONG_S)
            assert message is not None, f"{len(found)} records, and no end"
            error = message.error()
            if error is None:
                value = message.value()
                assert isinstance(value, bytes)
                found.append(int(value))
            elif error.code() == KafkaError._PARTITION_EOF:
                return found
    finally:
        reader.close()


def test_the_copier_copies_each_record_once_whoever_is_killed(tmp_path: Path) -> None:
    properties = {
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": "3",
        "min.insync.replicas": "2",
    }
    with ClusterProcess(tmp_path, properties=properties) as cluster:
        cluster.create_topic(SOURCE)
        cluster.create_topic(TARGET)
        fill(cluster)
        words = kafka_tools.command(
            *("transactional-message-copier", "--broker-list", cluster.bootstrap),
            *("--input-topic", SOURCE, "--input-partition", "0", "--output-topic", TARGET),
            *("--transaction-size", "20", "--transactional-id", "copier"),
            *("--consumer-group", "copy", "--max-messages", str(RECORDS)),
            "--enable-random-aborts",
        )
        with (tmp_path / "copier.log").open("wb") as log:
            copier = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            kill_by_turns(cluster, copier)
            assert copier.wait(COPY_S) == 0, (tmp_path / "copier.log").read_text()[-3000:]
        finally:
            copier.kill()
            copier.wait()
        assert read_committed(cluster) == list(range(RECORDS))


def kill_by_turns(cluster: ClusterProcess, copier: "subprocess.Popen[bytes]") -> None:
    """While the copier goes on: the leader of its target, then another broker, and so on."""
    killed_while_copying = 0
    for round_number in range(ROUNDS):
        before = end_offset(cluster)
        cluster.wait_for(
            lambda before=before: copier.poll() is not None or end_offset(cluster) > before + 100,  # type: ignore[misc]
            "records that are copied",
            90,
        )
        victim = cluster.leader(TARGET) if round_number % 2 == 0 else cluster.leader(STATE_TOPIC, 0)
        killed_while_copying += copier.poll() is None
        cluster.brokers[victim].kill()
        cluster.leader(TARGET)
        cluster.brokers[victim].start()
        for topic in (SOURCE, TARGET, STATE_TOPIC):
            cluster.wait_for_full_isr(topic)
    assert killed_while_copying, "the copier was done before the first kill"
