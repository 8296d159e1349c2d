"""From a frame to an answer, once for all APIs: header, version check, decode, handle, encode, errors.

A version or an API that is not offered closes the connection, because the peer could not read an answer; ApiVersions is
the exception, with an answer every client can read. A failing handler is logged and answered with UNKNOWN_SERVER_ERROR
where the response has room for it: the only `except Exception` of the broker.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, TypeVar, cast

from headrace.broker.apis.api_versions import unsupported_version_answer
from headrace.broker.connection import Answer, Connection
from headrace.broker.frame_buffer import Frame
from headrace.broker.produce_repeats import ProduceRepeats, Taken
from headrace.broker.refused_batches import RefusedBatches
from headrace.broker.request import RequestContext
from headrace.broker.request_metrics import RequestMetrics
from headrace.errors import MalformedMessage
from headrace.wire.api_keys import ApiKey
from headrace.wire.codec import Piece, encode_pieces
from headrace.wire.error_code import ErrorCode
from headrace.wire.headers import decode_request_header, encode_response_start
from headrace.wire.message import Response

F = TypeVar("F")
T = TypeVar("T")

_logger = logging.getLogger(__name__)
_PRODUCE: Final = int(ApiKey.PRODUCE)
_JOINED_BYTES: Final = 4096  # below this a copy is cheaper than a second piece to send
_BEFORE_OPENING: Final = frozenset(
    (ApiKey.API_VERSIONS, ApiKey.PULL_CHANGES, ApiKey.ASK_CONTROLLER)
)

Body = list[Piece] | Response | None
"""What a handler returns: an encoded body, a message to be encoded, or None for no answer at all."""


@dataclass(frozen=True, slots=True)
class BoundApi:
    """One API with its handler's dependencies bound."""

    key: ApiKey
    tags_from: int  # the first version with tags in the header of its response
    first_version: int
    last_version: int
    decode: Callable[[int, Frame, int], Any]
    handle: Callable[[Any, RequestContext], Body | Awaitable[Body]]
    response: type[Response]


class Dispatcher:
    """Called by connections with each frame."""

    def __init__(
        self, apis: Mapping[int, BoundApi], metrics: RequestMetrics, repeats: ProduceRepeats
    ) -> None:
        self._apis = apis
        self._metrics = metrics
        self._repeats = repeats
        self._opened = asyncio.Event()
        self._is_open = False

    def open(self) -> None:
        """Serve clients from now on; until then only ApiVersions and other brokers are answered."""
        self._is_open = True
        self._opened.set()

    def __call__(
        self, connection: Connection, frame: Frame
    ) -> "Answer | asyncio.Future[Answer] | Coroutine[Any, Any, Answer]":
        """Answer a request, now or later. MalformedMessage if the peer broke the protocol."""
        if connection.repeat_end:
            answer = self._repeated(connection, frame)
            if answer is not None:
                return answer
        key, version, correlation_id, client_id, header_size = decode_request_header(frame)
        api = self._apis.get(key)
        if api is None or not api.first_version <= version <= api.last_version:
            return _not_offered(key, version, correlation_id, api)
        if not self._is_open and api.key not in _BEFORE_OPENING:
            return self._when_open(connection, frame)
        started = perf_counter()
        request = api.decode(version, frame, header_size)
        context = RequestContext(key, version, client_id or "", connection)
        reply = _Reply(api, version, correlation_id, started, self._metrics)
        try:
            result = api.handle(request, context)
            if key == _PRODUCE:
                connection.repeat_end = self._repeats.learn(frame, version, request)
            return reply.of(result)
        except MalformedMessage:
            raise
        except Exception:
            _logger.exception("%s v%d failed", api.key.title, version)
            return reply.failed()

    def _repeated(self, connection: Connection, frame: Frame) -> "Answer | asyncio.Future[Answer]":
        """The answer to a Produce like one before; None if it is not, or does not go well."""
        started = perf_counter()
        taken = _tried(self._repeats.append, frame, connection)
        return None if taken is None else self._taken(frame, taken, started)

    def run(
        self, connection: Connection, frames: Sequence[Frame]
    ) -> "Sequence[Answer | asyncio.Future[Answer]]":
        """Answer as many of the first requests as are Produces alike; perhaps none."""
        started = perf_counter()
        taken = _tried(self._repeats.append_run, frames, connection)
        if taken and isinstance(taken[-1], list):  # then the others are, too
            self._metrics.observe(_PRODUCE, perf_counter() - started, len(taken))
            return cast("Sequence[list[Piece]]", taken)
        return [
            self._taken(frame, each, started) for frame, each in zip(frames, taken, strict=False)
        ]

    def _taken(
        self, frame: Frame, taken: Taken, started: float
    ) -> "Answer | asyncio.Future[Answer]":
        if isinstance(taken, list):
            self._metrics.observe(_PRODUCE, perf_counter() - started)
            return taken
        _, version, correlation_id, *_ = decode_request_header(frame)
        api = self._apis[_PRODUCE]
        return _Reply(api, version, correlation_id, started, self._metrics).chained(taken)

    async def _when_open(self, connection: Connection, frame: Frame) -> Answer:
        await self._opened.wait()
        answer = self(connection, frame)
        return await answer if isinstance(answer, Awaitable) else answer


def _tried(append: Callable[[F, int, RefusedBatches], T], frames: F, connection: Connection) -> T:
    """Do it. The frames are the peer's: what fails for a reason that we do not know ends the connection."""
    try:
        return append(frames, connection.repeat_end, connection.refused_batches)
    except Exception:
        _logger.exception("Produce failed")
        raise MalformedMessage("the request could not be answered") from None


def _not_offered(key: int, version: int, correlation_id: int, api: BoundApi | None) -> list[Piece]:
    if api is not None and api.key == ApiKey.API_VERSIONS:
        body = unsupported_version_answer(api.first_version, api.last_version)
        return _frame(api, 0, correlation_id, [body])
    raise MalformedMessage(f"API {key} version {version} is not offered here")


class _Reply:
    """The way back of one request."""

    __slots__ = ("_api", "_correlation_id", "_metrics", "_started", "_version", "_waits_from")

    def __init__(
        self,
        api: BoundApi,
        version: int,
        correlation_id: int,
        started: float,
        metrics: RequestMetrics,
    ) -> None:
        self._api = api
        self._version = version
        self._correlation_id = correlation_id
        self._started = started
        self._waits_from: float | None = None
        self._metrics = metrics

    def of(
        self, result: Body | Awaitable[Body]
    ) -> "Answer | asyncio.Future[Answer] | Coroutine[Any, Any, Answer]":
        if type(result) is list:  # first, because it is what the busiest APIs return
            return self.to(result)
        if isinstance(result, asyncio.Future):
            return self.chained(result)
        if asyncio.iscoroutine(result):
            self._waits_from = perf_counter()
            return self.awaited(result)
        return self.to(cast(Body, result))

    def to(self, body: Body) -> Answer:
        now, waits_from = perf_counter(), self._waits_from
        if waits_from is None:
            self._metrics.observe(self._api.key, now - self._started)
        else:
            local_s, remote_s = waits_from - self._started, now - waits_from
            self._metrics.observe_waited(self._api.key, local_s, remote_s)
        if body is None:
            return None
        if isinstance(body, list):
            pieces = body
        else:
            self._metrics.observe_errors(self._api.key, body)
            pieces = encode_pieces(body, self._version)
        return _frame(self._api, self._version, self._correlation_id, pieces)

    def failed(self) -> Answer:
        if "error_code" not in (name for name, *_ in self._api.response.SCHEMA):
            raise MalformedMessage("the request could not be answered")
        response = cast(Any, self._api.response)(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        return self.to(response)

    async def awaited(self, work: Coroutine[Any, Any, Body]) -> Answer:
        try:
            return self.to(await work)
        except MalformedMessage:
            raise
        except Exception:
            _logger.exception("%s v%d failed", self._api.key.title, self._version)
            return self.failed()

    def chained(self, work: "asyncio.Future[Any]") -> "asyncio.Future[Answer]":
        self._waits_from = perf_counter()
        answer: asyncio.Future[Answer] = work.get_loop().create_future()

        def finish(done: "asyncio.Future[Any]") -> None:
            if not answer.cancelled():
                answer.set_result(self.to(done.result()))

        work.add_done_callback(finish)
        return answer


def _frame(api: BoundApi, version: int, correlation_id: int, body: list[Piece]) -> list[Piece]:
    body_bytes = sum(map(len, body))
    start = encode_response_start(correlation_id, body_bytes, has_tags=version >= api.tags_from)
    if len(body) == 1 and body_bytes < _JOINED_BYTES:
        return [start + body[0]]
    return [start, *body]
