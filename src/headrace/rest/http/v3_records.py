"""Producing with version 3: `records` (a stream of JSON objects, answered one by one) and `records:batch`.

A body that has come whole is answered at once. Of a longer one the records are answered while it comes: as many are
under way as the window allows, and answers that the client does not fetch are kept up to a limit before reading stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.rest import errors
from headrace.rest.http import bodies
from headrace.rest.http.answers import answer
from headrace.rest.http.bodies import Bodies
from headrace.rest.json_stream import BrokenStream, JsonStream, ValueTooLong
from headrace.rest.media_types import JSON, V3_BODIES
from headrace.rest.producing import record_answers
from headrace.rest.producing.ordered_answers import OrderedAnswers
from headrace.rest.producing.produce_forms import BatchEntryForm, BatchForm, RecordForm
from headrace.rest.producing.producer import Produced
from headrace.rest.producing.record_writer import PreparedRecord, RecordWriter

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

_log = logging.getLogger(__name__)

_WINDOW_RECORDS: Final = 2000  # under way for one request
_WINDOW_BYTES: Final = 2 * 1024 * 1024
_ANSWERS_BYTES: Final = 8 * 1024 * 1024  # kept for a client that sends and does not read
_LEAST_ANSWERS_BYTES: Final = 256 * 1024
_ALL_ANSWERS_BYTES: Final = 128 * 1024 * 1024
_SEND_S: Final = 60.0  # how long a client may leave answers unread
_decode_record = msgspec.json.Decoder(RecordForm).decode


class StreamLimits(NamedTuple):
    """Limits of one stream of records."""

    record_bytes: int
    duration_s: float


class ProduceCounts:
    """What the metrics tell of producing with version 3."""

    def __init__(self) -> None:
        self.requests = 0  # records that came
        self.request_bytes = 0
        self.responses = 0  # records that were written
        self.errors = 0
        self.streams = 0  # under way now


class V3Records:
    """The two routes."""

    def __init__(
        self,
        writer: RecordWriter,
        body_reader: Bodies,
        *,
        cluster_id: str,
        limits: StreamLimits,
        batch_max_entries: int,
        stopping: asyncio.Event,
    ) -> None:
        self._writer = writer
        self._bodies = body_reader
        self._cluster_id = cluster_id
        self._limits = limits
        self._batch_max_entries = batch_max_entries
        self._stopping = stopping
        self.counts = ProduceCounts()

    async def stream(self, request: Request) -> Response:
        """POST …/records."""
        self._require_cluster(request)
        bodies.require_media_type(request, V3_BODIES)
        first = await request.receive()
        data: bytes = first.get("body", b"")
        has_more = first.get("more_body", False)
        if not data and not has_more:
            raise errors.invalid_payload("Request body is empty. Data is required.")
        topic = request.path_params["topic"]
        records = _Records(
            self._writer,
            self.counts,
            self._cluster_id,
            topic,
            self._limits.record_bytes,
        )
        if has_more:
            return _Streamed(records, data, self._limits, self._stopping)
        return await records.whole(data)

    async def batch(self, request: Request) -> Response:
        """POST …/records:batch."""
        self._require_cluster(request)
        form = await self._bodies.form(request, BatchForm, V3_BODIES)
        if form is None:
            raise errors.invalid_batch("Request body is empty. Data is required.")
        entries = form.checked(self._batch_max_entries)
        topic = request.path_params["topic"]
        outcomes = await asyncio.gather(*(self._entry(topic, each) for each in entries))
        successes = [each for each in outcomes if each.error_code is None]
        failures = [each for each in outcomes if each.error_code is not None]
        return answer({"successes": successes, "failures": failures}, status=207)

    def _require_cluster(self, request: Request) -> None:
        if request.path_params["cluster"] != self._cluster_id:
            raise errors.cluster_not_found(request.path_params["cluster"])

    async def _entry(self, topic: str, entry: BatchEntryForm) -> record_answers.RecordAnswer:
        done: asyncio.Future[Produced | errors.RestError] = (
            asyncio.get_running_loop().create_future()
        )
        self.counts.requests += 1
        try:
            prepared = self._writer.prepared_now(topic, entry) or await self._writer.prepare(
                topic, entry
            )
            self._writer.send(prepared, done.set_result)
            outcome = await done
        except errors.RestError as refused:
            outcome = refused
        if isinstance(outcome, errors.RestError):
            self.counts.errors += 1
            return record_answers.failure(outcome, entry_id=entry.id)
        self.counts.responses += 1
        return record_answers.success(self._cluster_id, prepared, outcome, entry_id=entry.id)


class _Records:
    """The records of one request and their answers."""

    def __init__(
        self,
        writer: RecordWriter,
        counts: ProduceCounts,
        cluster: str,
        topic: str,
        max_record_bytes: int,
    ) -> None:
        self._writer = writer
        self._counts = counts
        self._cluster = cluster
        self._topic = topic
        self._stream = JsonStream(max_record_bytes)
        self.changed = asyncio.Event()  # an answer is next in order
        self.freed = asyncio.Event()  # fewer records are under way, or fewer answers are kept
        self.answers = OrderedAnswers(self.changed.set)
        self.bytes_under_way = 0
        self.streams = counts

    async def whole(self, data: bytes) -> Response:
        """The answer to a body that has come whole."""
        await self.take(data)
        await self.end()
        parts = self.answers.take()
        while len(self.answers):
            self.changed.clear()
            await self.changed.wait()
            parts += self.answers.take()
        return Response(b"".join(parts), media_type=JSON)

    async def take(self, data: bytes) -> bool:
        """Send the records that these bytes complete; False where nothing behind them can be understood."""
        try:
            for value in self._stream.feed(data):
                await self._record(value)
        except ValueTooLong:
            why = "Produce request size is larger than allowed threshold"
            self.refuse(errors.bad_request(f"Error processing message: {why}"))
            return False
        except BrokenStream as broken:
            self.refuse(errors.bad_request(f"Error processing message: {broken}"))
            return False
        return True

    async def end(self) -> None:
        """No more bytes will come."""
        try:
            last = self._stream.end()
            if last is not None:
                await self._record(last)
        except BrokenStream as broken:
            self.refuse(errors.bad_request(f"Error processing message: {broken}"))

    def refuse(self, error: errors.RestError) -> None:
        """Answer the next record with an error."""
        self._counts.errors += 1
        self.answers.place()(record_answers.line(record_answers.failure(error)))

    async def _record(self, value: bytes) -> None:
        counts = self._counts
        counts.requests += 1
        counts.request_bytes += len(value)
        try:
            form = _decode_record(value)
        except msgspec.ValidationError as wrong:
            self.refuse(errors.RestError(400, 400, str(wrong)))
            return
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
            raise BrokenStream(str(wrong)) from wrong
        try:
            prepared = self._writer.prepared_now(self._topic, form)
            if prepared is None:
                prepared = await self._writer.prepare(self._topic, form)
        except errors.RestError as refused:
            self.refuse(refused)
            return
        place = self.answers.place()
        self.bytes_under_way += len(value)
        on_done = partial(self._done, place, prepared, len(value))
        try:
            self._writer.send(prepared, on_done)
        except errors.RestError as refused:
            on_done(refused)

    def _done(
        self,
        place: Callable[[bytes], None],
        prepared: PreparedRecord,
        size: int,
        outcome: Produced | errors.RestError,
    ) -> None:
        self.bytes_under_way -= size
        self.freed.set()
        if isinstance(outcome, Produced):
            self._counts.responses += 1
            found = record_answers.success(self._cluster, prepared, outcome)
        else:
            self._counts.errors += 1
            found = record_answers.failure(outcome)
        place(record_answers.line(found))


class _Streamed(Response):
    """Reads records and writes their answers at the same time."""

    def __init__(
        self, records: _Records, first: bytes, limits: StreamLimits, stopping: asyncio.Event
    ) -> None:
        super().__init__(media_type=JSON)
        del self.headers["content-length"]
        self._records = records
        self._first = first
        self._limits = limits
        self._stopping = stopping
        self._is_gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request."""
        records = self._records
        records.streams.streams += 1
        reading: asyncio.Task[None] | None = None
        try:
            # Raises where the server has answered already, because what came behind the headers is not HTTP.
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            reading = asyncio.create_task(self._read(receive))
            reading.add_done_callback(lambda _: records.changed.set())
            await self._write(send, reading)
        finally:
            records.streams.streams -= 1
            if reading is not None:
                reading.cancel()
        if not self._is_gone:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send, reading: asyncio.Task[None]) -> None:
        records = self._records
        while not self._is_gone:
            records.changed.clear()
            taken = records.answers.take()
            if taken:
                records.freed.set()
                try:
                    async with asyncio.timeout(_SEND_S):
                        await send(
                            {
                                "type": "http.response.body",
                                "body": b"".join(taken),
                                "more_body": True,
                            }
                        )
                except TimeoutError:
                    _log.warning(
                        "a client that produces has not read its answers for %d s", _SEND_S
                    )
                    self._is_gone = True
                    records.freed.set()
                continue
            if reading.done() and not len(records.answers):
                return
            await records.changed.wait()

    async def _read(self, receive: Receive) -> None:
        records = self._records
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.duration_s
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            has_more = await records.take(self._first)
            while has_more:
                await self._room()
                message = await self._next(receive, stopping, deadline - loop.time())
                if message is None:
                    return
                if message["type"] == "http.disconnect":
                    self._is_gone = True
                    return
                has_more = await records.take(message.get("body", b""))
                if has_more and not message.get("more_body", False):
                    await records.end()
                    return
        except Exception:  # noqa: BLE001 - a bug costs this request only
            _log.exception("a stream of records failed")
            records.refuse(errors.RestError(500, 500, "Internal Server Error"))
        finally:
            stopping.cancel()

    async def _next(
        self, receive: Receive, stopping: asyncio.Future[Any], remaining_s: float
    ) -> Message | None:
        """What comes next; None where the connection is to be closed."""
        receiving = asyncio.ensure_future(receive())
        try:
            await asyncio.wait(
                (receiving, stopping),
                timeout=max(remaining_s, 0),
                return_when=asyncio.FIRST_COMPLETED,
            )
            if receiving.done():
                return receiving.result()
        finally:
            receiving.cancel()
        if not stopping.done():
            why = "Streaming connection open for longer than allowed: Connection will be closed."
            self._records.refuse(errors.RestError(408, 408, f"Request Timeout: {why}"))
        return None

    async def _room(self) -> None:
        """Wait until more records may be taken."""
        records = self._records
        while not self._is_gone:
            records.freed.clear()
            answers = records.answers
            streams = max(records.streams.streams, 1)
            kept = min(_ANSWERS_BYTES, max(_LEAST_ANSWERS_BYTES, _ALL_ANSWERS_BYTES // streams))
            if (
                answers.waiting < _WINDOW_RECORDS
                and records.bytes_under_way < _WINDOW_BYTES
                and answers.ready_bytes < kept
            ):
                return
            await records.freed.wait()
