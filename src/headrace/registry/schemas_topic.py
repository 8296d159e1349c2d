"""The topic `_schemas`: read from its beginning and for ever, written by the primary. A rim module over librdkafka.

Owns a consumer and a producer, and the thread that polls each of them. What was read reaches the event loop in the order of the
topic through `on_records`. A write is over when its records are committed and have been read back here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from headrace.client.admin.admin import Admin
from headrace.errors import HeadraceError

_log = logging.getLogger(__name__)
_POLL_S: Final = 0.5
_BATCH: Final = 500
_PARTITION: Final = 0


class TopicFailed(HeadraceError):
    """The topic cannot be used, or a write was not confirmed."""


class RecordTooLarge(TopicFailed):
    """The brokers do not take a record of this size: it was not written."""


class ReadRecord(NamedTuple):
    """A record of the topic."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]
    timestamp: int | None = None  # in milliseconds


class NewRecord(NamedTuple):
    """A record to be written."""

    key: bytes
    value: bytes | None
    headers: list[tuple[str, bytes]]


class SchemasTopic:
    """Open it, then `write`; `position` is the offset behind the last record that `on_records` got."""

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        on_records: Callable[[list[ReadRecord]], None],
        *,
        client_settings: Mapping[str, Any] | None = None,
        write_timeout_ms: int = 30_000,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._on_records = on_records
        self._client_settings = dict(client_settings or {})
        self._write_timeout_ms = write_timeout_ms
        self.position = 0
        self._moved = asyncio.Event()
        self._is_stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self._producer: Any = None
        self._loop = asyncio.get_running_loop()
        self._failure: str | None = None

    @property
    def failure(self) -> str | None:
        """Why the topic cannot be read at the moment."""
        return self._failure

    async def open(self, *, replication_factor: int) -> None:
        """Create the topic if it is missing, and read it to its present end. Raises TopicFailed."""
        end = await asyncio.to_thread(self._prepare, replication_factor)
        from headrace.client.librdkafka import make_producer

        self._producer = make_producer(
            {
                **self._client_settings,
                "bootstrap.servers": self._bootstrap_servers,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 0,
                "message.timeout.ms": self._write_timeout_ms,
                "message.max.bytes": 8 << 20,
            }
        )
        for run in (self._read, self._report):
            thread = threading.Thread(target=run, name=f"{self._topic}-{run.__name__}", daemon=True)
            thread.start()
            self._threads.append(thread)
        while self.position < end:  # a large topic may take longer than a write may
            self._moved.clear()
            await self._moved.wait()

    async def close(self) -> None:
        """Stop both threads."""
        self._is_stopping.set()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    async def reached(self, offset: int) -> None:
        """Wait until everything before `offset` has been read. Raises TopicFailed."""
        try:
            async with asyncio.timeout(self._write_timeout_ms / 1000):
                while self.position < offset:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise TopicFailed(
                f"{self._topic} could not be read up to offset {offset}: {self._failure or 'no answer'}"
            ) from None

    async def write(self, records: Sequence[NewRecord]) -> list[int]:
        """Write records; returns their offsets, once everything up to them was read.

        Raises TopicFailed, and RecordTooLarge where it is known which records were written and which were not.
        """
        outcomes = await asyncio.gather(*map(self._produce, records), return_exceptions=True)
        failures = [each for each in outcomes if isinstance(each, BaseException)]
        for failure in failures:
            if not isinstance(failure, RecordTooLarge):
                raise failure
        offsets = [each for each in outcomes if isinstance(each, int)]
        if offsets:
            await self.reached(max(offsets) + 1)
        if failures:
            raise failures[0]
        return offsets

    def _produce(self, record: NewRecord) -> asyncio.Future[int]:
        future: asyncio.Future[int] = self._loop.create_future()

        def told(error: Any, message: Any) -> None:
            self._loop.call_soon_threadsafe(_settle, future, error, message)

        try:
            self._producer.produce(
                self._topic,
                key=record.key,
                value=record.value,
                partition=_PARTITION,
                headers=record.headers,
                on_delivery=told,
            )
        except BufferError as full:
            future.set_exception(TopicFailed(str(full)))
        return future

    def _report(self) -> None:
        while not self._is_stopping.is_set():
            self._producer.poll(_POLL_S)
        self._producer.flush(1.0)

    def _read(self) -> None:
        from headrace.client.librdkafka import (
            OFFSET_BEGINNING,
            PARTITION_EOF,
            TIMESTAMP_NOT_AVAILABLE,
            KafkaException,
            TopicPartition,
            make_consumer,
        )

        consumer = make_consumer(
            {
                **self._client_settings,
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": f"{self._topic}-reader",  # never joined, nothing is committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
                # Says how far was read where the last offsets hold no record any more.
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self._topic, _PARTITION, OFFSET_BEGINNING)])
        try:
            while not self._is_stopping.is_set():
                try:
                    # `consume` alone would wait for a whole batch.
                    first = consumer.poll(_POLL_S)
                    messages = [] if first is None else [first, *consumer.consume(_BATCH, 0)]
                except KafkaException as trouble:
                    self._failure = str(trouble)
                    continue
                records: list[ReadRecord] = []
                end = -1
                for message in messages:
                    error = message.error()
                    if error is not None and error.code() == PARTITION_EOF:
                        self._failure = None
                        end = message.offset() or 0
                        continue
                    if error is not None:
                        self._failure = error.str()
                        _log.warning("%s cannot be read: %s", self._topic, self._failure)
                        continue
                    self._failure = None
                    offset = message.offset()
                    assert offset is not None, "a record without an offset"
                    headers: Any = message.headers() or []
                    kind, timestamp = message.timestamp()
                    records.append(
                        ReadRecord(
                            offset,
                            message.key(),
                            message.value(),
                            headers,
                            timestamp if kind != TIMESTAMP_NOT_AVAILABLE else None,
                        )
                    )
                    end = offset + 1
                if end >= 0:
                    self._loop.call_soon_threadsafe(self._take, records, end)
        finally:
            consumer.close()

    def _take(self, records: list[ReadRecord], end: int) -> None:
        if records:
            self._on_records(records)
        self.position = max(self.position, end)
        self._moved.set()

    def _prepare(self, replication_factor: int) -> int:
        """Blocking: see that the topic is there and fit for use; returns the offset of its end."""
        from headrace.registry.topic_preparation import prepare

        with Admin(self._bootstrap_servers, client_id="headrace-schema-registry") as admin:
            return prepare(admin, self._topic, replication_factor)


def _settle(future: asyncio.Future[int], error: Any, message: Any) -> None:
    from headrace.client.librdkafka import RECORD_TOO_LARGE

    if future.done():
        return
    if error is not None:
        kind = RecordTooLarge if error.code() in RECORD_TOO_LARGE else TopicFailed
        future.set_exception(kind(error.str()))
    else:
        future.set_result(message.offset())
