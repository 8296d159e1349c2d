"""Positions of assigned partitions as offsets to commit: what Java's consumer commits with each automatic commit.

librdkafka commits only the offsets of partitions of which it consumed something. Java's consumer commits the position of every
assigned partition, also where nothing was consumed. Without that, a partition that was idle has no committed offset: the next
member of the group resolves `auto.offset.reset` anew, and with `latest` skips the records that came in between.

Owns which positions are stored. When they are committed (interval, rebalance, close) is left to librdkafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.client.librdkafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    PARTITION_EOF,
    KafkaException,
)

if TYPE_CHECKING:
    from headrace.client.librdkafka import Consumer, Message, TopicPartition

_RESOLVE_S: Final = 10.0
# Words of auto.offset.reset, in Java and in librdkafka, and the timestamps that ListOffsets takes for them.
_RESET_TIMESTAMPS: Final = {
    "latest": OFFSET_END,
    "largest": OFFSET_END,
    "end": OFFSET_END,
    "earliest": OFFSET_BEGINNING,
    "smallest": OFFSET_BEGINNING,
    "beginning": OFFSET_BEGINNING,
}


class PositionCommits:
    """Stores the positions of one consumer, made with `settings` of librdkafka."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._is_on = settings.get("enable.auto.commit", "true").lower() == "true"
        self._reset = _RESET_TIMESTAMPS.get(settings.get("auto.offset.reset", "latest").lower())
        self._is_incremental = (
            settings.get("group.protocol", "classic").lower() == "consumer"
            or settings.get("partition.assignment.strategy") == "cooperative-sticky"
        )

    @staticmethod
    def needed_settings() -> dict[str, str]:
        """What the consumer must be made with: it leaves storing to us, and tells when a partition's end is reached."""
        return {"enable.auto.offset.store": "false", "enable.partition.eof": "true"}

    def on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Assign, with a position for each partition that the group has no offset of, and store these positions.

        Where that fails, librdkafka finds the position by itself, and `advance` stores it when the partition's end is reached.
        """
        if not self._is_on or self._reset is None:
            return  # librdkafka assigns
        try:
            found = _resolved(consumer, partitions, self._reset)
        except KafkaException:
            return
        if self._is_incremental:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
        if found:
            _store(consumer, found)

    def advance(self, consumer: Consumer, messages: Iterable[Message]) -> None:
        """Store the positions behind these messages, the records and the ends of partitions among them.

        After an offset that was out of range, or behind records that a consumer does not see, only the end tells the position.
        """
        from headrace.client.librdkafka import TopicPartition

        if not self._is_on:
            return
        reached: dict[tuple[str, int], TopicPartition] = {}
        for message in messages:
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            is_end = is_partition_end(message)
            if topic is None or partition is None or offset is None:
                continue
            if is_end or message.error() is None:
                position = offset if is_end else offset + 1
                epoch = message.leader_epoch()
                reached[topic, partition] = TopicPartition(
                    topic, partition, position, leader_epoch=-1 if epoch is None else epoch
                )
        if reached:
            _store(consumer, list(reached.values()))


def is_partition_end(message: Message) -> bool:
    """Whether this is no record but the news that a partition's end was reached."""
    error = message.error()
    return error is not None and error.code() == PARTITION_EOF


def _resolved(
    consumer: Consumer, partitions: list[TopicPartition], reset: int
) -> list[TopicPartition]:
    """Give each partition without a committed offset its first position. Returns those. Raises KafkaException."""
    from headrace.client.librdkafka import TopicPartition

    committed = consumer.committed(partitions, timeout=_RESOLVE_S)
    new = [
        TopicPartition(each.topic, each.partition, reset)
        for each in committed
        if each.offset == OFFSET_INVALID and each.error is None
    ]
    if not new:
        return []
    answers = consumer.offsets_for_times(new, timeout=_RESOLVE_S)
    found = [each for each in answers if each.offset >= 0 and each.error is None]
    offsets = {(each.topic, each.partition): each.offset for each in found}
    for each in partitions:
        each.offset = offsets.get((each.topic, each.partition), each.offset)
    return found


def _store(consumer: Consumer, positions: list[TopicPartition]) -> None:
    try:
        consumer.store_offsets(offsets=positions)
    except KafkaException:
        pass  # revoked meanwhile: the partition's next owner stores its own
