"""Transactions while brokers are killed: the coordinator and the leaders of partitions die between any two steps.

Every transaction writes its number to each partition. In the end each number is in all partitions or in none, and each outcome that the
producer was told has come true.
"""

from pathlib import Path
from threading import Event, Thread
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from headrace.coordinator.partitioning import coordinator_partition
from tests.support.cluster_process import ClusterProcess

TOPIC: Final = "ledger"
TRANSACTIONAL_ID: Final = "teller"
PARTITIONS: Final = range(3)
STATE_TOPIC: Final = "__transaction_state"
STATE_PARTITIONS: Final = 3
LONG_S: Final = 40


class Teller:
    """A producer of transactions, every fourth of them aborted, that goes on whatever happens."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.committed: set[int] = set()
        self.aborted: set[int] = set()
        self.unknown: set[int] = set()
        self.errors: list[str] = []
        self.is_over = Event()
        self._number = 0
        self._thread = Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.is_over.set()
        self._thread.join()

    def _run(self) -> None:
        producer = self._producer()
        while not self.is_over.is_set():
            self._number += 1
            try:
                self._transact(producer, self._number)
            except KafkaException as refused:
                self.errors.append(str(refused))
                producer = self._recovered(producer, refused.args[0])

    def _producer(self) -> Producer:
        """A producer that has taken its predecessor's place."""
        while True:
            made = Producer(
                {
                    "bootstrap.servers": self._bootstrap,
                    "transactional.id": TRANSACTIONAL_ID,
                    "transaction.timeout.ms": 30_000,
                    "reconnect.backoff.max.ms": 500,
                    "log_level": 0,
                }
            )
            try:
                made.init_transactions(LONG_S)
            except KafkaException as refused:
                self.errors.append(str(refused))
            else:
                return made

    def _transact(self, producer: Producer, number: int) -> None:
        producer.begin_transaction()
        for partition in PARTITIONS:
            producer.produce(TOPIC, str(number), partition=partition)
        if number % 4 == 0:
            producer.flush(LONG_S)
            self.unknown.add(number)
            producer.abort_transaction(LONG_S)
            self.unknown.discard(number)
            self.aborted.add(number)
            return
        self.unknown.add(number)
        producer.commit_transaction(LONG_S)
        self.unknown.discard(number)
        self.committed.add(number)

    def _recovered(self, producer: Producer, error: KafkaError) -> Producer:
        if error.txn_requires_abort():
            try:
                producer.abort_transaction(LONG_S)
            except KafkaException as refused:
                self.errors.append(str(refused))
            else:
                # It was not committed, and now it cannot be.
                self.unknown.discard(self._number)
                self.aborted.add(self._number)
                return producer
        return self._producer()


def read_committed(cluster: ClusterProcess) -> dict[int, list[int]]:
    """The numbers in each partition, as they stand there."""
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
    found: dict[int, list[int]] = {each: [] for each in PARTITIONS}
    try:
        reader.assign([TopicPartition(TOPIC, each, 0) for each in PARTITIONS])
        ended: set[int] = set()
        while len(ended) < len(PARTITIONS):
            message = reader.poll(LONG_S)
            assert message is not None, f"partitions without an end: {set(PARTITIONS) - ended}"
            partition = message.partition()
            assert partition is not None
            error = message.error()
            if error is None:
                value = message.value()
                assert isinstance(value, bytes)
                found[partition].append(int(value))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(partition)
    finally:
        reader.close()
    return found


def test_transactions_are_whole_whoever_is_killed(tmp_path: Path) -> None:
    properties = {
        "transaction.state.log.num.partitions": str(STATE_PARTITIONS),
        "transaction.state.log.replication.factor": "3",
        "min.insync.replicas": "2",
    }
    with ClusterProcess(tmp_path, properties=properties) as cluster:
        cluster.create_topic(TOPIC, partitions=len(PARTITIONS))
        teller = Teller(cluster.bootstrap)
        teller.start()
        try:
            cluster.wait_for(lambda: len(teller.committed) >= 5, "the first transactions", 60)
            state_partition = coordinator_partition(TRANSACTIONAL_ID, STATE_PARTITIONS)
            for round_number in range(4):
                # By turns the coordinator, and the leader of a partition that may be another broker.
                victim = (
                    cluster.leader(STATE_TOPIC, state_partition)
                    if round_number % 2 == 0
                    else cluster.leader(TOPIC, round_number % len(PARTITIONS))
                )
                cluster.brokers[victim].kill()
                before = len(teller.committed)
                cluster.wait_for(
                    lambda before=before: len(teller.committed) >= before + 5,  # type: ignore[misc]
                    "transactions after a broker was killed",
                    90,
                )
                cluster.brokers[victim].start()
                cluster.wait_for_full_isr(TOPIC)
                cluster.wait_for_full_isr(STATE_TOPIC)
        finally:
            teller.stop()
        # Whatever is open is ended before the partitions are read to their ends.
        Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": TRANSACTIONAL_ID,
                "log_level": 0,
            }
        ).init_transactions(LONG_S)
        found = read_committed(cluster)
    for partition, numbers in found.items():
        assert len(numbers) == len(set(numbers)), f"partition {partition} has a number twice"
        assert numbers == sorted(numbers)
        assert teller.committed <= set(numbers), sorted(teller.committed - set(numbers))
        assert not teller.aborted & set(numbers)
        assert set(numbers) <= teller.committed | teller.unknown
    assert len({tuple(numbers) for numbers in found.values()}) == 1, "a transaction is torn"
    assert len(teller.aborted) > 4
