"""The producer of the proxy: hands records to librdkafka and tells what became of each. A rim module.

It lives on the event loop: while records are under way, a timer asks librdkafka for news. Memory is bounded, with a
share for each topic, so that records for a broker that is away do not keep out those for the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from headrace.client.librdkafka import (
    KafkaError,
    KafkaException,
    Message,
    Producer,
    make_producer,
)
from headrace.rest import errors
from headrace.rest.memory_budget import MemoryBudget
from headrace.wire.error_code import ErrorCode

_log = logging.getLogger(__name__)

ANY_PARTITION: Final = -1
_RECORD_OVERHEAD: Final = 200  # what a record costs beside its bytes
_SHARES: Final = 8
_POLL_S: Final = 0.001
_SLOW_POLL_S: Final = 0.01
_IDLE_POLL_S: Final = 1.0
_QUICK_POLLS: Final = 200  # without news, before polling slows down
_CLOSE_S: Final = 5.0
_DEFAULTS: Final[Mapping[str, Any]] = {
    "acks": "all",
    "linger.ms": "5",  # as Java's since Kafka 4.0: records of many requests share a batch
    "partitioner": "murmur2_random",  # Java's: the same key goes to the same partition from any client
    "message.timeout.ms": "30000",
    "topic.metadata.propagation.max.ms": "5000",
    "client.id": "headrace-rest",
}
_UNKNOWN_TOPIC: Final = frozenset({KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART})


class Produced(NamedTuple):
    """Where a record was written."""

    partition: int
    offset: int
    timestamp_ms: int


class NewRecord(NamedTuple):
    """A record to write. `timestamp_ms` 0 means now."""

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int = ANY_PARTITION
    headers: Sequence[tuple[str, bytes | None]] | None = None
    timestamp_ms: int = 0

    @property
    def size(self) -> int:
        """What it costs while it is under way."""
        size = _RECORD_OVERHEAD + len(self.key or b"") + len(self.value or b"")
        for name, value in self.headers or ():
            size += len(name) + len(value or b"")
        return size


OnDone = Callable[[Produced | errors.RestError], None]


class RecordProducer:
    """Open it on the event loop that uses it. Raises SettingRefused where librdkafka does not take a setting."""

    def __init__(
        self,
        bootstrap_servers: str,
        settings: Mapping[str, str],
        *,
        buffer_bytes: int,
        on_unknown_topic: Callable[[str], None],
    ) -> None:
        # As with Java's producer, fewer acknowledgements mean that idempotence is off.
        is_idempotent = settings.get("acks", "all") in ("all", "-1")
        self._config = {
            **_DEFAULTS,
            "enable.idempotence": "true" if is_idempotent else "false",
            "queue.buffering.max.kbytes": str(buffer_bytes // 512),
            "queue.buffering.max.messages": "1000000",
            **settings,
            "bootstrap.servers": bootstrap_servers,
        }
        self._budget = MemoryBudget(buffer_bytes, share=buffer_bytes // _SHARES)
        self._on_unknown_topic = on_unknown_topic
        self._producer = make_producer(self._config, self._noticed)
        self._retired: list[
            Producer
        ] = []  # after a fatal error, until they have told what became of their records
        self._is_fatal = False
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._polls_without_news = 0
        self._is_closed = False
        self._drained = asyncio.Event()  # no record is under way
        self._drained.set()
        self.under_way = 0
        self.delivered = 0
        self.failed = 0
        self._schedule(_IDLE_POLL_S)

    @property
    def held_bytes(self) -> int:
        """Memory of the records under way."""
        return self._budget.held_bytes

    def send(self, record: NewRecord, on_done: OnDone) -> None:
        """Write a record; `on_done` is called later, from the event loop. Raises RestError where it is refused now."""
        size = record.size
        if not self._budget.take(record.topic, size):
            raise errors.try_again(
                f"Too many records of topic {record.topic} wait for their brokers; send it again later."
            )
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=partial(self._done, record.topic, size, on_done),
                timestamp=record.timestamp_ms,
                headers=record.headers,  # type: ignore[arg-type]
            )
        except (KafkaException, BufferError, ValueError, TypeError) as refused:
            self._budget.give(record.topic, size)
            raise _refusal(refused) from refused
        self.under_way += 1
        self._polls_without_news = 0
        if self.under_way == 1:
            self._drained.clear()
            self._schedule(_POLL_S)

    async def close(self) -> None:
        """Wait a while for the records under way, then drop what is left."""
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._drained.wait()
        except TimeoutError:
            pass
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self.under_way:
            _log.warning("%d records were not delivered before the proxy stopped", self.under_way)

    # ---- news of librdkafka

    def _schedule(self, delay_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(delay_s, self._poll)

    def _poll(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        news = self._producer.poll(0)
        for old in list(self._retired):
            news += old.poll(0)
            if not len(old):
                self._retired.remove(old)
        if self._is_fatal:
            self._replace()
        self._polls_without_news = 0 if news else self._polls_without_news + 1
        if not self.under_way:
            self._schedule(_IDLE_POLL_S)
        elif self._polls_without_news < _QUICK_POLLS:
            self._schedule(_POLL_S)
        else:
            self._schedule(_SLOW_POLL_S)

    def _done(
        self, topic: str, size: int, on_done: OnDone, error: KafkaError | None, message: Message
    ) -> None:
        self.under_way -= 1
        if not self.under_way:
            self._drained.set()
        self._budget.give(topic, size)
        if error is None:
            self.delivered += 1
            on_done(Produced(message.partition(), message.offset(), message.timestamp()[1]))  # type: ignore[arg-type]
            return
        self.failed += 1
        if error.code() in _UNKNOWN_TOPIC:
            self._on_unknown_topic(topic)
        on_done(of_kafka_error(error))

    def _noticed(self, error: KafkaError) -> None:
        if error.fatal():
            self._is_fatal = True
        _log.warning("producer: %s", error.str())

    def _replace(self) -> None:
        """An idempotent producer that lost its place cannot go on; records under way fail, new ones get a new producer."""
        _log.warning("the producer cannot go on after a fatal error; a new one takes its place")
        self._is_fatal = False
        self._retired.append(self._producer)
        self._producer.purge()
        self._producer = make_producer(self._config, self._noticed)


def of_kafka_error(error: KafkaError) -> errors.RestError:
    """The answer for an error of librdkafka: its own errors are negative, those of brokers are Kafka's."""
    code = error.code()
    if code == KafkaError._UNKNOWN_TOPIC:
        return errors.unknown_topic_or_partition()
    if code == KafkaError._UNKNOWN_PARTITION:
        return errors.partition_not_found()
    if code == KafkaError._AUTHENTICATION:
        return errors.of_kafka(ErrorCode.SASL_AUTHENTICATION_FAILED, error.str())
    if code == KafkaError._AUTO_OFFSET_RESET:
        return errors.kafka_failed(error.str())
    if code < ErrorCode.UNKNOWN_SERVER_ERROR:
        return errors.try_again(error.str())
    return errors.of_kafka(ErrorCode.of(code), error.str())


def _refusal(refused: Exception) -> errors.RestError:
    if isinstance(refused, KafkaException):
        return of_kafka_error(refused.args[0])
    if isinstance(refused, BufferError):
        return errors.try_again("Too many records wait for their brokers; send it again later.")
    return errors.bad_request(str(refused))
