"""Idempotent producers and a reader at work while faults happen, and the judgement at the end.

Threads of this process drive librdkafka; what happens goes into a `History`. The end phase is always the same: everything is
healed, the ISR is full, the producers are flushed, a fresh reader reads all of it, the brokers stop, the files are compared.
"""

import itertools
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from tests.cluster.replicas import differences
from tests.support.cluster_process import ClusterProcess
from tests.support.history import (
    History,
    Log,
    Outcome,
    RecordId,
    Seen,
    Send,
    check,
    outcome_of,
    told,
    value_of,
)
from tests.support.watermarks import watermarks

_DELIVERY_S = 120
_CLIENT = {
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 2000,
    "log_level": 0,
}


class Load:
    """Producers that write at a steady rate, round the partitions, and one reader that follows."""

    def __init__(
        self, cluster: ClusterProcess, topic: str, *, producers: int = 2, records_per_s: int = 150
    ) -> None:
        self.history = History()
        self._cluster = cluster
        self._topic = topic
        self.partitions = sorted(cluster.partitions(topic))
        self._pause_s = producers / records_per_s
        self._stopping = threading.Event()
        self._failures: list[str] = []
        self._has_failed = False
        self._threads = [
            threading.Thread(target=self._produce, args=(number,), name=f"producer-{number}")
            for number in range(producers)
        ]
        self._threads.append(threading.Thread(target=self._read, name="reader"))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        self.wait_for_progress(50)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        if error is not None:
            # Nobody waits for records that a broken cluster will never take.
            self._has_failed = True
        for thread in self._threads:
            thread.join()

    def wait_for_progress(
        self, records: int = 100, timeout_s: float = 40, *, partitions: Iterable[int] | None = None
    ) -> None:
        """Wait until this many more records are acknowledged, on each of these partitions (of all) at least one."""
        since_ns = time.monotonic_ns()
        wanted = set(self.partitions if partitions is None else partitions)

        def progressed() -> bool:
            news = [
                send.record.partition
                for send in self.history.acknowledged()
                if send.invoked_ns >= since_ns
            ]
            return len(news) >= records and set(news) >= wanted

        self._cluster.wait_for(progressed, f"{records} more records acknowledged", timeout_s)

    # ---- the threads

    def _produce(self, number: int) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 5,
                "message.timeout.ms": _DELIVERY_S * 1000,
                "retry.backoff.ms": 50,
                "retry.backoff.max.ms": 300,
                **_CLIENT,
            }
        )
        for count in itertools.count():
            if self._stopping.is_set():
                break
            partition = self.partitions[count % len(self.partitions)]
            record = RecordId(number, partition, count // len(self.partitions))
            send = Send(record, time.monotonic_ns())
            self.history.sends[record] = send

            def delivered(error: KafkaError | None, message: Message, send: Send = send) -> None:
                send.completed_ns = time.monotonic_ns()
                send.outcome = outcome_of(None if error is None else error.name())
                if send.outcome is Outcome.OK:
                    offset = message.offset()
                    send.offset = -1 if offset is None else offset

            try:
                producer.produce(
                    self._topic, value_of(record), partition=partition, on_delivery=delivered
                )
                producer.poll(self._pause_s)
            except (BufferError, KafkaException) as error:  # nothing that it could go on after
                self._failures.append(f"producer {number}: {error}")
                self._has_failed = True
                break
        left = producer.flush(0 if self._has_failed else _DELIVERY_S)
        if left:
            self._failures.append(f"producer {number}: {left} records were never answered")

    def _read(self) -> None:
        consumer = _reader(self._cluster, self._topic, self.partitions)
        while not self._stopping.is_set():
            for message in consumer.consume(100, timeout=0.1):
                error = message.error()
                if error is None:
                    self.history.seen.append(_seen("reader", message))
                elif error.code() in (
                    KafkaError._AUTO_OFFSET_RESET,
                    KafkaError.OFFSET_OUT_OF_RANGE,
                ):
                    self._failures.append(f"reader: {error}")
        consumer.close()

    # ---- the end

    def finish(self, *, at_least_acknowledged: int = 300) -> None:
        """Stop the load in a healed cluster, read everything, stop the brokers, and judge."""
        cluster = self._cluster
        cluster.wait_for_full_isr(self._topic)
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        final, high_watermarks = read_all(cluster, self._topic, self.partitions)
        replicas = {index: view.replicas for index, view in cluster.partitions(self._topic).items()}
        cluster.wait_for_full_isr(self._topic)
        cluster.stop_brokers()
        problems = [*self._failures]
        if violations := check(self.history, final, at_least_acknowledged=at_least_acknowledged):
            problems.append(told(violations))
        for partition, members in replicas.items():
            name = f"{self._topic}-{partition}"
            problems += differences(
                {f"broker {one}": cluster.brokers[one].log_of(name) for one in members},
                high_watermarks[partition],
            )
        assert not problems, "\n".join(problems)


def _reader(cluster: ClusterProcess, topic: str, partitions: list[int]) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 100,
            **_CLIENT,
        }
    )
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
    return consumer


def _seen(reader: str, message: Message) -> Seen:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    value = message.value()
    assert value is None or isinstance(value, bytes)
    return Seen(reader, partition, offset, value)


def read_all(
    cluster: ClusterProcess, topic: str, partitions: list[int]
) -> tuple[Log, dict[int, int]]:
    """What a fresh reader finds, up to the high watermark of each partition."""
    consumer = _reader(cluster, topic, partitions)
    ends = {
        partition: watermarks(consumer, TopicPartition(topic, partition))[1]
        for partition in partitions
    }
    log: dict[int, list[tuple[int, bytes | None]]] = {partition: [] for partition in partitions}
    next_offsets = dict.fromkeys(partitions, 0)

    def read_to_the_end() -> bool:
        for message in consumer.consume(1000, timeout=0.2):
            if message.error() is None:
                _, partition, offset, value = _seen("final", message)
                log[partition].append((offset, value))
                next_offsets[partition] = offset + 1
        return all(next_offsets[each] >= ends[each] for each in partitions)

    cluster.wait_for(read_to_the_end, f"{topic} is read to its end")
    consumer.close()
    return log, ends
