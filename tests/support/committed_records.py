"""What a consumer with `isolation.level=read_committed` finds in a topic, read with a client that is not ours."""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

_PATIENCE_S = 30.0


def committed_values(bootstrap_servers: str, topic: str, partitions: int) -> list[bytes | None]:
    """The values of all partitions, up to the last stable offset of each."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "committed-values",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[bytes | None] = []
    try:
        left = set(range(partitions))
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in left])
        while left:
            message = consumer.poll(_PATIENCE_S)
            assert message is not None, f"no end of {topic}-{sorted(left)}"
            error = message.error()
            if error is None:
                found.append(message.value())
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            number = message.partition()
            assert number is not None
            left.discard(number)
    finally:
        consumer.close()
    return found
