"""One consumer instance: a thread that owns a Kafka consumer and does what requests ask, in turn. A rim module.

A read goes on in short steps, so that a commit does not wait for it. An instance whose broker does not answer holds up
its own thread and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from headrace.rest import errors
from headrace.rest.consumers.kafka_consumer import KafkaConsumer
from headrace.rest.consumers.progress import ReadRecord
from headrace.rest.consumers.read_plan import ReadPlan
from headrace.rest.consumers.record_answers import RecordAnswer, RecordDecoder

T = TypeVar("T")

_IDLE_S: Final = 0.5  # between looks at the group while no request comes
_STEP_S: Final = 0.05
_STEP_RECORDS: Final = 500
_ANSWER_S: Final = 60.0  # how long a request waits for anything but records

_encode = msgspec.json.Encoder().encode


class _Task(NamedTuple, Generic[T]):
    work: Callable[[KafkaConsumer], T]
    answer: asyncio.Future[T]
    ends_reads: bool  # what a read under way has got is answered before this is done


class _Read:
    """A read under way."""

    def __init__(self, plan: ReadPlan, answer: asyncio.Future[bytes]) -> None:
        self.plan = plan
        self.answer = answer
        self.records: list[ReadRecord] = []
        self.answers: list[RecordAnswer] = []
        self.has_begun = False
        self.is_cancelled = False


class ConsumerInstance:
    """Open it before use. Calls may come from the event loop only."""

    def __init__(
        self, name: str, make: Callable[[], KafkaConsumer], decoder: RecordDecoder
    ) -> None:
        self._make = make
        self._decoder = decoder
        self._loop = asyncio.get_running_loop()
        self._tasks: queue.SimpleQueue[_Task[Any] | _Read | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=f"rest-consumer-{name}", daemon=True)
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self.used_at = self._loop.time()
        self._in_use = 0

    async def open(self) -> None:
        """Make the consumer. Raises RestError where a setting is none."""
        self._thread.start()
        await self._opened

    def is_idle(self, since: float) -> bool:
        """Whether no request has used it since a time of the event loop."""
        return not self._in_use and self.used_at < since

    async def call(self, work: Callable[[KafkaConsumer], T], *, ends_reads: bool = False) -> T:
        """Do something with the consumer; with `ends_reads`, something that changes what is read. Raises RestError."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._tasks.put(_Task(work, answer, ends_reads))
        with self._used():
            try:
                async with asyncio.timeout(_ANSWER_S):
                    return await answer
            except TimeoutError:
                raise errors.try_again("Kafka has not answered in time.") from None

    async def read(self, plan: ReadPlan, is_gone: asyncio.Future[Any]) -> bytes:
        """Records as a JSON array. If `is_gone` is done first, the records that were read are kept for the next read."""
        answer: asyncio.Future[bytes] = self._loop.create_future()
        read = _Read(plan, answer)
        self._tasks.put(read)
        with self._used():
            await asyncio.wait((answer, is_gone), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                read.is_cancelled = True
            return await answer

    async def close(self, timeout_s: float) -> None:
        """Commit, where it does so by itself, and leave the group. What takes longer goes on in its thread."""
        self._tasks.put(None)
        await asyncio.wait((self._closed,), timeout=timeout_s)

    @contextlib.contextmanager
    def _used(self) -> Any:
        self._in_use += 1
        try:
            yield
        finally:
            self._in_use -= 1
            self.used_at = self._loop.time()

    # ---- in the thread

    def _run(self) -> None:
        try:
            consumer = self._make()
        except Exception as wrong:  # noqa: BLE001 - told to the request that opens the instance
            self._fail(self._opened, wrong)
            return
        self._answer(self._opened, None)
        reads: list[_Read] = []
        while True:
            try:
                task = self._tasks.get_nowait() if reads else self._tasks.get(timeout=_IDLE_S)
            except queue.Empty:
                if not reads:
                    consumer.stay_in_group()
                elif self._is_over(consumer, reads[0]):
                    reads.pop(0)
                continue
            if task is None:
                break
            self._begin(consumer, task, reads)
        for read in reads:
            self._fail(read.answer, errors.consumer_not_found())
        with contextlib.suppress(Exception):  # nobody is there to be told
            consumer.close()
        self._answer(self._closed, None)

    def _begin(self, consumer: KafkaConsumer, task: _Task[Any] | _Read, reads: list[_Read]) -> None:
        if isinstance(task, _Read):
            reads.append(task)
            return
        if task.ends_reads:
            for read in reads:
                self._deliver(consumer, read)
            reads.clear()
        self._do(consumer, task)

    def _do(self, consumer: KafkaConsumer, task: _Task[Any]) -> None:
        try:
            result = task.work(consumer)
        except Exception as wrong:  # noqa: BLE001 - told to the request that asked for it
            self._fail(task.answer, wrong)
        else:
            self._answer(task.answer, result)

    def _is_over(self, consumer: KafkaConsumer, read: _Read) -> bool:
        """Go on with a read for a moment; whether it is answered."""
        try:
            if not read.has_begun:
                read.has_begun = True
                consumer.begin_read()
            is_complete = self._step(consumer, read)
        except Exception as wrong:  # noqa: BLE001 - told to the request that reads
            consumer.progress.put_back(read.records)
            self._fail(read.answer, wrong)
            return True
        if read.is_cancelled:
            consumer.progress.put_back(read.records)
            self._answer(read.answer, b"[]")
            return True
        if is_complete:
            self._deliver(consumer, read)
        return is_complete

    def _deliver(self, consumer: KafkaConsumer, read: _Read) -> None:
        consumer.progress.deliver(read.records)
        self._answer(read.answer, _encode(read.answers))

    def _step(self, consumer: KafkaConsumer, read: _Read) -> bool:
        """Take the records that are there, or wait a moment for the first; whether the read is complete."""
        plan = read.plan
        wait_s = min(_STEP_S, plan.remaining_s(time.monotonic()))
        for _ in range(_STEP_RECORDS):
            record = consumer.poll(wait_s)
            if record is None:
                return plan.has_enough or plan.is_over(time.monotonic())
            if not plan.fits(record.size):
                consumer.progress.put_back([record])
                return True
            try:
                read.answers.append(self._decoder.decode(record))
            except errors.RestError:
                consumer.progress.put_back([record])
                if read.records:
                    return True  # the next read begins with the broken record, and tells of it
                raise
            read.records.append(record)
            plan.add(record.size)
            wait_s = 0.0
        return plan.has_enough or plan.is_over(time.monotonic())

    # ---- to the event loop

    def _answer(self, future: asyncio.Future[T], result: T) -> None:
        self._tell(lambda: None if future.done() else future.set_result(result))

    def _fail(self, future: asyncio.Future[Any], wrong: Exception) -> None:
        self._tell(lambda: None if future.done() else future.set_exception(wrong))

    def _tell(self, tell: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(tell)
