"""A Kafka consumer as one instance uses it: librdkafka's, with Java's rules for subscriptions and positions. Blocking.

Used by one thread. librdkafka takes part in a rebalance of its group when it is polled, and a group waits for all of its
members. So the consumer is polled while no client reads, too: what comes is kept for the next read, up to a limit, and
then the partitions are paused. What was read is compared with the consumer's own positions before it is used
(`Progress`), because its partitions may have been taken away meanwhile.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headrace.client.librdkafka import (
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Message,
    SettingRefused,
    make_consumer,
)
from headrace.client.librdkafka import TopicPartition as KafkaPartition
from headrace.ids import TopicPartition
from headrace.rest import errors
from headrace.rest.consumers.forms import OffsetForm, TimestampForm
from headrace.rest.consumers.progress import Progress, ReadRecord
from headrace.rest.producing.produce_forms import timestamp_ms
from headrace.rest.producing.producer import of_kafka_error

_log = logging.getLogger(__name__)

_ANSWER_S: Final = 10.0
_SEEK_S: Final = 5.0
_SEEK_AGAIN_S: Final = 0.05
_KEPT_BYTES: Final = 1024 * 1024  # of records that came while no client read
_KEPT_RECORDS: Final = 1000  # in one look
# A topic or partition that is not there may come: Java's consumer waits for it without a word.
_AWAITED: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
_EXCLUSIVE: Final = "Subscription to topics, partitions and pattern are mutually exclusive"
DEFAULTS: Final[Mapping[str, Any]] = {
    "client.id": "headrace-rest",
    "auto.offset.reset": "latest",
    "enable.auto.commit": "true",
    "isolation.level": "read_uncommitted",
    "queued.max.messages.kbytes": "8192",
    "allow.auto.create.topics": "true",
}


class KafkaConsumer:
    """Every call raises RestError where Kafka refuses or cannot be reached."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """Raises RestError where a setting is none."""
        self._commits_itself = str(config.get("enable.auto.commit")).lower() == "true"
        try:
            self._consumer = make_consumer(
                # What was delivered is told to librdkafka when the next read begins, so that it commits no record
                # that a client has not got.
                {**config, "enable.auto.offset.store": "false"},
                _log_trouble,
            )
        except SettingRefused as wrong:
            raise errors.invalid_consumer_config(str(wrong)) from wrong
        self._mode: str | None = None  # "topics", "pattern" or "partitions"
        self._topics: list[str] = []
        self._is_paused = False
        self._failure: errors.RestError | None = None  # met while no client read
        self.progress = Progress()

    # ---- what to read

    def subscribe(self, topics: Sequence[str] | None, pattern: str | None) -> None:
        """Read topics as a member of the group."""
        if topics is not None and not topics:
            self.unsubscribe()
            return
        self._enter("pattern" if topics is None else "topics")
        self._topics = list(dict.fromkeys(topics or ()))
        wanted = self._topics if topics is not None else [f"^({pattern})$"]
        self._tried(lambda: self._consumer.subscribe(wanted))

    def unsubscribe(self) -> None:
        """Read nothing any more."""
        self._mode = None
        self._topics = []
        self._is_paused = False
        self._failure = None
        self.progress = Progress()
        self._tried(self._consumer.unsubscribe)
        self._tried(self._consumer.unassign)

    def subscription(self) -> list[str]:
        """The topics that are subscribed to; of a pattern, those that it has led to."""
        if self._mode == "pattern":
            return sorted({each.topic for each in self.assignment()})
        return list(self._topics)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read partitions on one's own."""
        wanted = [KafkaPartition(each.topic, each.partition) for each in dict.fromkeys(partitions)]
        if not wanted:
            self.unsubscribe()
            return
        self._enter("partitions")
        self.progress = Progress()
        self._tried(lambda: self._consumer.assign(wanted))

    def assignment(self) -> list[TopicPartition]:
        """The partitions that are read."""
        found = self._tried(self._consumer.assignment)
        return sorted(TopicPartition(each.topic, each.partition) for each in found)

    def _enter(self, mode: str) -> None:
        if self._mode not in (None, mode):
            raise errors.illegal_state(_EXCLUSIVE)
        self._mode = mode

    # ---- where to read

    def seek(self, offsets: Sequence[OffsetForm], timestamps: Sequence[TimestampForm]) -> None:
        """Go on at offsets, or at the first record of a time; at the end where there is none so late."""
        targets = {TopicPartition(each.topic, each.partition): each.offset for each in offsets}
        times = {
            TopicPartition(each.topic, each.partition): timestamp_ms(each.timestamp)
            for each in timestamps
        }
        self._require_assigned([*targets, *times])
        if times:
            wanted = [KafkaPartition(*place, moment) for place, moment in times.items()]
            found = self._tried(lambda: self._consumer.offsets_for_times(wanted, timeout=_ANSWER_S))
            for each in found:
                _require(each.error)
                place = TopicPartition(each.topic, each.partition)
                targets[place] = each.offset if each.offset >= 0 else self._watermarks(place)[1]
        self._seek(targets)

    def seek_to_edge(self, partitions: Iterable[TopicPartition], *, to_end: bool) -> None:
        """Go to the beginning or the end of partitions."""
        wanted = list(partitions)
        self._require_assigned(wanted)
        targets = {}
        for place in wanted:
            # Asked for here: left to librdkafka, the end would be that of some later moment.
            first, last = self._watermarks(place)
            targets[place] = last if to_end else first
        self._seek(targets)

    def _watermarks(self, place: TopicPartition) -> tuple[int, int]:
        found = self._tried(
            lambda: self._consumer.get_watermark_offsets(KafkaPartition(*place), timeout=_ANSWER_S)
        )
        if found is None:
            raise errors.try_again(f"No answer of the leader of {place.topic}-{place.partition}.")
        first, last = found
        return first, last

    def _require_assigned(self, partitions: Iterable[TopicPartition]) -> None:
        assigned = set(self.assignment())
        for each in partitions:
            if each not in assigned:
                raise errors.illegal_state(
                    f"No current assignment for partition {each.topic}-{each.partition}"
                )

    def _seek(self, targets: Mapping[TopicPartition, int]) -> None:
        self.progress.forget(targets)
        for place, offset in targets.items():
            deadline = time.monotonic() + _SEEK_S
            while True:
                try:
                    self._consumer.seek(KafkaPartition(*place, offset))
                    break
                except KafkaException as refused:
                    # A partition that was just assigned is not being fetched yet.
                    is_early = refused.args[0].code() == KafkaError._STATE
                    if not is_early or time.monotonic() > deadline:
                        raise of_kafka_error(refused.args[0]) from refused
                time.sleep(_SEEK_AGAIN_S)

    # ---- reading

    def begin_read(self) -> None:
        """What earlier reads gave to clients may be committed now, as with Java's consumer."""
        self.progress.keep_only(self._position)
        self._store_delivered()
        if self._is_paused:
            self._is_paused = False
            self._tried(lambda: self._consumer.resume(self._consumer.assignment()))

    def poll(self, timeout_s: float) -> ReadRecord | None:
        """The next record."""
        undelivered = self.progress.next_undelivered()
        if undelivered is not None:
            return undelivered
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        return self._polled(timeout_s)

    def stay_in_group(self) -> None:
        """Take part in what happens in the group, while no client reads."""
        if self._mode not in ("topics", "pattern"):
            return
        try:
            for _ in range(_KEPT_RECORDS):
                record = self._polled(0)
                if record is None:
                    break
                self.progress.keep(record)
            if self.progress.undelivered_bytes > _KEPT_BYTES:
                self._is_paused = True
                self._consumer.pause(self._consumer.assignment())
        except KafkaException as refused:
            self._failure = of_kafka_error(refused.args[0])
        except errors.RestError as refused:
            self._failure = refused

    def _polled(self, timeout_s: float) -> ReadRecord | None:
        message = self._tried(lambda: self._consumer.poll(timeout_s))
        if message is None:
            return None
        error = message.error()
        if error is not None and error.code() in _AWAITED:
            return None
        _require(error)
        return _record(message)

    # ---- commits

    def commit(self, offsets: Sequence[OffsetForm] | None, *, is_async: bool) -> None:
        """Commit offsets of processed records, or, without them, everything that clients have got."""
        if offsets is None:
            self.progress.keep_only(self._position)
            wanted = [KafkaPartition(*place, to) for place, to in self.progress.delivered.items()]
        else:
            wanted = [_to_commit(each) for each in offsets]
        if not wanted:
            return
        if is_async:
            self._tried(lambda: self._consumer.commit(offsets=wanted, asynchronous=True))
            return
        for each in self._tried(lambda: self._consumer.commit(offsets=wanted, asynchronous=False)):
            _require(each.error)

    def committed(self, partitions: Iterable[TopicPartition]) -> list[KafkaPartition]:
        """What the group has committed; nothing for partitions without a commit."""
        wanted = [KafkaPartition(*each) for each in dict.fromkeys(partitions)]
        if not wanted:
            return []
        found = self._tried(lambda: self._consumer.committed(wanted, timeout=_ANSWER_S))
        for each in found:
            _require(each.error)
        return [each for each in found if each.offset >= 0]

    def close(self) -> None:
        """Commit, if it does so by itself, and leave the group."""
        try:
            self.progress.keep_only(self._position)
            self._store_delivered()
        finally:
            self._consumer.close()

    def _store_delivered(self) -> None:
        if not self._commits_itself:
            return
        for place, offset in self.progress.delivered.items():
            try:
                self._consumer.store_offsets(offsets=[KafkaPartition(*place, offset)])
            except KafkaException:
                pass  # the partition was taken away in this moment: its next owner reads the records again

    def _position(self, place: TopicPartition) -> int | None:
        [found] = self._consumer.position([KafkaPartition(*place)])
        return None if found.error or found.offset == OFFSET_INVALID else found.offset

    @staticmethod
    def _tried(call: Any) -> Any:
        try:
            return call()
        except KafkaException as refused:
            raise of_kafka_error(refused.args[0]) from refused


def _to_commit(form: OffsetForm) -> KafkaPartition:
    # confluent-kafka sends a NUL behind metadata, even behind an empty text. So 4,096 characters are one more than Kafka's
    # default of offset.metadata.max.bytes.
    metadata = (form.metadata,) if form.metadata else ()
    return KafkaPartition(form.topic, form.partition, form.offset + 1, *metadata)


def _log_trouble(error: KafkaError) -> None:
    _log.warning("consumer: %s", error.str())


def _require(error: KafkaError | None) -> None:
    if error is not None:
        raise of_kafka_error(error)


def _record(message: Message) -> ReadRecord:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return ReadRecord(
        topic,
        partition,
        offset,
        message.key(),
        message.value(),
        tuple(message.headers() or ()),  # type: ignore[arg-type]
    )
