"""Where a partition begins and ends, for tests in which a leader may just have been elected, or started."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, KafkaException, TopicPartition

PATIENCE_S = 30


def watermarks(consumer: Consumer, place: TopicPartition) -> tuple[int, int]:
    """Asks until the leader knows.

    librdkafka does not ask again for OFFSET_NOT_AVAILABLE, the answer of a leader that has not
    yet heard from its followers, and calls an error retriable only where a producer met it.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return consumer.get_watermark_offsets(place, timeout=10)
        except KafkaException:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.05)
