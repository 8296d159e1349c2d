"""A group member as a process of its own, because a test wants to kill it: `python -m … CLIENT BOOTSTRAP TOPIC GROUP`.

It stays until SIGTERM, then leaves politely, and prints a line for every assignment (see `member_lines`).
"""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Protocol

from tests.conformance.clients import member_lines

SESSION_TIMEOUT_MS = 3000
HEARTBEAT_MS = 500


class _Partition(Protocol):
    @property
    def partition(self) -> int: ...


def _tell(partitions: Iterable[_Partition]) -> None:
    member_lines.write(partition.partition for partition in partitions)


class _Stop:
    """Turns true when the process is asked to end."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, _signal: int, _frame: object) -> None:
        self.asked = True


def confluent(bootstrap: str, topic: str, group: str) -> None:
    from confluent_kafka import Consumer

    stop = _Stop()
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe([topic], on_assign=lambda _consumer, partitions: _tell(partitions))
    while not stop.asked:
        consumer.poll(0.1)
    consumer.close()


def kafka_python(bootstrap: str, topic: str, group: str) -> None:
    from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition

    class Listener(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            pass

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            _tell(assigned)

    stop = _Stop()
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.subscribe([topic], listener=Listener())
    while not stop.asked:
        consumer.poll(timeout_ms=100)
    consumer.close()


def aiokafka(bootstrap: str, topic: str, group: str) -> None:
    from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
            pass

        async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            _tell(assigned)

    async def stay() -> None:
        stop = _Stop()
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=group,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        consumer.subscribe([topic], listener=Listener())
        await consumer.start()
        while not stop.asked:
            await consumer.getmany(timeout_ms=100)
        await consumer.stop()

    asyncio.run(stay())


MEMBERS: dict[str, Callable[[str, str, str], None]] = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}

if __name__ == "__main__":
    MEMBERS[sys.argv[1]](*sys.argv[2:])
