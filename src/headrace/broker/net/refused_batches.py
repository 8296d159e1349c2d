"""Batches of idempotent producers that were refused on one connection and will be sent again (pure).

Owns which batches are refused because of an earlier one, and which gaps in sequence numbers are passed over.

A producer has up to five batches of a partition in flight. When the first is refused for a passing reason, such as a broker
that is not the leader yet, the others are already on their way. They are refused for the same reason until the first one
comes again, even if the reason has passed meanwhile. Otherwise they would find a gap in the sequence numbers, and
OUT_OF_ORDER_SEQUENCE_NUMBER makes librdkafka send all its batches again under a new producer epoch: those that a former leader
had written and replicated would be written twice. If the producer is new to the partition there would be no gap to see: a later
batch would be appended without the first, and librdkafka would take its acknowledgement for that of both.

librdkafka also leaves gaps of its own: when a partition gets another leader it may send new batches there before the last one that
the former leader refused. To a leader that knows nothing of the producer this looks like its first batch, and librdkafka would take
the acknowledgement for that of the missing one. So a batch before which others may be missing, among the first of a producer in
a leader epoch, is refused with NOT_LEADER_OR_FOLLOWER, after which the producer sends all its batches in order. A producer that takes
another broker for the leader in between may overtake again. If the same batch comes a third time in one leader epoch, Kafka's rules
apply: it is appended if the producer is unknown, and is OUT_OF_ORDER_SEQUENCE_NUMBER otherwise.
"""

from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from headrace.records.batch_view import BatchHeader, sequence_after
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

PASSING_ERRORS: Final = frozenset(
    (
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
"""Errors after which a producer sends the same batch again, with the same sequence number."""

_MOST_REFUSALS: Final = 2  # of a batch that overtakes, in one leader epoch
_IN_FLIGHT: Final = 5  # batches of a partition that a producer sends without an answer
_MOST_ENTRIES: Final = 1024  # of one connection; without its entry a batch is treated as Kafka does
_MOST_NAME_CHARACTERS: Final = 249  # longer names belong to no topic

TopicKey: TypeAlias = str | UUID
"""A topic as requests name it: by id from version 13 on."""


_Key: TypeAlias = tuple[TopicKey, int, int]


class _RefusedBatch(NamedTuple):
    producer_epoch: int
    next_sequence: int  # of the batch that was sent directly behind it
    refused: Refusal
    followers: int  # how many batches behind it may still be in flight


class RefusedBatches(dict[_Key, _RefusedBatch]):
    """By topic, partition and producer id: the batch that was refused last."""

    __slots__ = ("_overtaking",)

    def __init__(self) -> None:
        super().__init__()
        # → (producer epoch, base sequence, leader epoch), how often it was refused
        self._overtaking: dict[_Key, tuple[tuple[int, int, int], int]] = {}

    def add(self, topic: TopicKey, partition: int, batch: BatchHeader, refused: Refusal) -> None:
        """Remember a batch that was refused, if its producer will send it again."""
        if batch.producer_id < 0 or refused.error_code not in PASSING_ERRORS:
            return
        if isinstance(topic, str) and len(topic) > _MOST_NAME_CHARACTERS:
            return
        if len(self) >= _MOST_ENTRIES:
            del self[next(iter(self))]
        self[topic, partition, batch.producer_id] = _RefusedBatch(
            batch.producer_epoch,
            sequence_after(batch.last_sequence, 1),
            refused,
            _IN_FLIGHT - 1,
        )

    def refusal_of(self, topic: TopicKey, partition: int, batch: BatchHeader) -> Refusal | None:
        """The refusal of the batch that this one was sent behind; None if it may be appended."""
        key = topic, partition, batch.producer_id
        last = self.get(key)
        if last is None:
            return None
        if (
            batch.producer_epoch == last.producer_epoch
            and batch.base_sequence == last.next_sequence
            and last.followers > 0
        ):
            self[key] = last._replace(
                next_sequence=sequence_after(batch.last_sequence, 1),
                followers=last.followers - 1,
            )
            return last.refused
        del self[key]
        return None

    def refuse_overtaking(
        self, topic: TopicKey, partition: int, batch: BatchHeader, leader_epoch: int
    ) -> Refusal | None:
        """The refusal of a batch before which others are missing; None if it had enough in this leader epoch."""
        key = topic, partition, batch.producer_id
        place = batch.producer_epoch, batch.base_sequence, leader_epoch
        last_place, refusals = self._overtaking.pop(key, (place, 0))
        if last_place == place and refusals == _MOST_REFUSALS:
            return None
        if len(self._overtaking) >= _MOST_ENTRIES:
            del self._overtaking[next(iter(self._overtaking))]
        self._overtaking[key] = place, refusals + 1 if last_place == place else 1
        return Refusal(
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            f"batches of producer {batch.producer_id} before sequence {batch.base_sequence} are missing: send in order",
        )
