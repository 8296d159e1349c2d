"""A broker that goes down again and again, at any moment, while several partitions are written and a group reads.

`tests/conformance/test_restart.py` shows the same for one partition and two restarts that wait for progress; here the
moment is chance (HEADRACE_RESTART_SEED repeats it), polite stops and kills alternate with what the group commits, and
offsets, values and order are compared for every partition.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from random import Random, SystemRandom
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from headrace.client.connection import Connection
from tests.robustness.conftest import StartBroker
from tests.robustness.wire_calls import create_topic
from tests.support.broker import bootstrap
from tests.support.headrace_process import HeadraceProcess

SEED = int(os.environ.get("HEADRACE_RESTART_SEED", str(SystemRandom().getrandbits(32))))
ROUNDS = 5
PARTITIONS = 4
UNDER_WAY = 400
TOPIC = "loaded"
TIMEOUT_S = 60.0
PADDING = bytes(500)
# Small segments, so that restarts meet rolled ones too.
SETTINGS = {"log.segment.bytes": "1048576", "log.flush.offset.checkpoint.interval.ms": "300"}
HOW: dict[str, Callable[[HeadraceProcess], None]] = {
    "stop": lambda broker: broker.stop(),
    "kill": lambda broker: broker.kill(),
}


def value_of(number: int) -> bytes:
    return b"%d " % number + PADDING


class Load:
    """An idempotent producer in a thread, one sequence of numbers per partition, until the block ends."""

    def __init__(self, address: str) -> None:
        self.acknowledged: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
        self.sent = 0
        self.delivered = 0
        self.errors: list[KafkaError] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 1,
                "batch.num.messages": 10,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )

    def _run(self) -> None:
        while not self._stop.is_set() and not self.errors:
            partition, number = self.sent % PARTITIONS, self.sent // PARTITIONS
            self._producer.produce(
                TOPIC, value_of(number), partition=partition, on_delivery=self._delivered
            )
            self.sent += 1
            self._producer.poll(0)
            while self.sent - self.delivered > UNDER_WAY and not self.errors:
                self._producer.poll(0.01)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        self.delivered += 1
        if error is not None:
            self.errors.append(error)
            return
        partition, offset, value = message.partition(), message.offset(), message.value()
        assert partition is not None
        assert offset is not None
        assert value is not None
        self.acknowledged[partition].append((offset, value))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(TIMEOUT_S)
        if error is None:
            assert not self.errors, self.errors[:3]
            assert left == 0, f"{left} records were not delivered"


@pytest.mark.parametrize("how", HOW)
def test_restarts_at_any_moment_lose_and_double_nothing(
    start_broker: StartBroker, how: str
) -> None:
    random = Random(SEED)
    broker = start_broker(SETTINGS)
    with Connection("127.0.0.1", broker.port) as connection:
        create_topic(connection, TOPIC, partitions=PARTITIONS)
    committed: dict[int, int] = {}
    with Load(bootstrap(broker)) as load:
        for _ in range(ROUNDS):
            resume_and_commit(bootstrap(broker), committed)
            time.sleep(random.uniform(0, 0.4))
            HOW[how](broker)
            time.sleep(random.choice((0, 0, 0.3)))
            broker.start()
        resume_and_commit(bootstrap(broker), committed)
    story = f"HEADRACE_RESTART_SEED={SEED}"
    found = everything(bootstrap(broker), load.sent)
    for partition in range(PARTITIONS):
        values = [value for _, value in found[partition]]
        assert values == list(map(value_of, range(len(values)))), story
        # With one idempotent producer that loses nothing, every record in the log was acknowledged, at its offset.
        assert found[partition] == load.acknowledged[partition], story
        assert [offset for offset, _ in found[partition]] == list(range(len(values))), story
    assert sum(map(len, found.values())) == load.sent, story
    assert load.sent > 0


def resume_and_commit(address: str, committed: dict[int, int]) -> None:
    """A new member reads some and commits: it must begin where the one before it committed, record after record."""
    consumer = new_consumer(address, group="resuming")
    try:
        consumer.subscribe([TOPIC])
        next_offsets: dict[int, int] = {}
        for partition, offset, value in take(consumer, 100):
            expected = next_offsets.get(partition, committed.get(partition, 0))
            assert offset == expected, f"{partition}: {offset} came, {expected} was next"
            assert value == value_of(offset)
            next_offsets[partition] = offset + 1
        offsets = [TopicPartition(TOPIC, *each) for each in next_offsets.items()]
        for answer in consumer.commit(offsets=offsets, asynchronous=False) or []:
            assert answer.error is None, answer.error
        committed.update(next_offsets)
    finally:
        consumer.close()


def everything(address: str, count: int) -> dict[int, list[tuple[int, bytes]]]:
    """All records of the topic."""
    consumer = new_consumer(address, group="not-joined")
    found: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    try:
        consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
        for partition, offset, value in take(consumer, count):
            found[partition].append((offset, value))
        # Nothing may be left: a doubled record would come now.
        assert not consumer.consume(1, timeout=0.5)
    finally:
        consumer.close()
    return found


def new_consumer(address: str, *, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
    )


def take(consumer: Consumer, count: int) -> list[tuple[int, int, bytes]]:
    """(partition, offset, value) of at least one record each time, `count` in all."""
    taken: list[tuple[int, int, bytes]] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(taken) < count:
        assert time.monotonic() < deadline, f"only {len(taken)} of {count} records came"
        for message in consumer.consume(count - len(taken), timeout=1.0):
            error = message.error()
            if error is not None:
                assert error.retriable() or error.code() == KafkaError._TRANSPORT, error
                continue
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None
            assert offset is not None
            assert value is not None
            taken.append((partition, offset, value))
    return taken
