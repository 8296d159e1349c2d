"""From frames to answers, once for all APIs, in stages: decode, authenticate, authorise, quota, handle, encode.

Owns the order of the stages. `request_steps` declares those between decode and handle. An API may declare a fast path, which
recognises a request instead of decoding it and handles it in fewer calls; its requests pass the same steps.

A version or an API that is not offered closes the connection, because the peer could not read an answer; ApiVersions is
the exception, with an answer every client can read. A handler that fails is logged and answered with UNKNOWN_SERVER_ERROR.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from headrace.broker.net.connection import Answer, AnyAnswer, Connection, DelayedAnswer
from headrace.broker.net.frame_buffer import Frame
from headrace.broker.requests.advertised_apis import unsupported_version_answer
from headrace.broker.requests.array_answer import EncodedAnswer
from headrace.broker.requests.error_answers import error_answer
from headrace.broker.requests.fast_path import FastPath, KnownRequests
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.requests.request_metrics import RequestMetrics
from headrace.broker.requests.request_steps import RequestSteps
from headrace.errors import MalformedMessage
from headrace.replication.completion import Completion
from headrace.wire.api_keys import ApiKey
from headrace.wire.codec import Piece, encode_pieces
from headrace.wire.error_code import ErrorCode
from headrace.wire.headers import decode_request_header, encode_response_start
from headrace.wire.message import Response

_logger = logging.getLogger(__name__)
_JOINED_BYTES: Final = 4096  # below this a copy is cheaper than a second piece to send

Body: TypeAlias = list[Piece] | Response | None
"""What a handler returns: an encoded body, a message to be encoded, or None for no answer at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundApi:
    """One API with its handler's dependencies bound."""

    key: ApiKey
    is_internal: bool  # offered to other brokers only, on their listener
    tags_from: int  # the first version with tags in the header of its response
    first_version: int
    last_version: int
    decode: Callable[[int, Frame, int], Any]
    handle: Callable[
        [Any, RequestContext], Body | Completion | Coroutine[Any, Any, Body | Completion]
    ]
    fast_path: FastPath | None = None


class Dispatcher:
    """Called by connections with the frames that they have read."""

    def __init__(
        self,
        apis: Mapping[int, BoundApi],
        metrics: RequestMetrics,
        monotonic: Callable[[], float],
        steps: RequestSteps,
    ) -> None:
        self._apis = apis
        self._metrics = metrics
        self._monotonic = monotonic
        self._steps = steps.in_order()
        self._opened = asyncio.Event()
        self._is_open = False

    def open(self) -> None:
        """Serve clients from now on; until then only ApiVersions and other brokers are answered."""
        self._is_open = True
        self._opened.set()

    def __call__(self, connection: Connection, frames: Sequence[Frame]) -> Sequence[AnyAnswer]:
        """Answer the first request, or several that a fast path takes together. MalformedMessage if the peer broke the protocol."""
        known: KnownRequests | None = connection.known_requests
        if known is None:
            return (self._decoded(connection, frames[0]),)
        started, context = self._monotonic(), known.context
        try:
            recognised = known.recognise(frames)
            if recognised is not None:
                if self._steps:
                    count, request, _ = recognised
                    together = list(islice(frames, count))
                    refused = self._refusal(context, request, together)
                    if refused is not None:
                        return self._refused(context, request, together, refused)
                    recognised = known.first(recognised, connection.admitted_requests)
                answers = known.answer(recognised, frames)
                if answers:
                    return self._observed(answers, context, started)
        except MalformedMessage:
            raise
        except Exception:
            # The client sent these frames, so a failure that they cause closes this connection only.
            _logger.exception("%s failed", ApiKey(context.api_key).title)
            raise MalformedMessage("the request could not be answered") from None
        return (self._decoded(connection, frames[0]),)

    def _observed(
        self, answers: Sequence[Answer | DelayedAnswer], context: RequestContext, started: float
    ) -> Sequence[Answer | DelayedAnswer]:
        """Count the answers of a fast path in the metrics, delayed ones when they are completed."""
        now, key = self._monotonic(), context.api_key
        if self._steps:
            context.connection.admitted_requests -= len(answers)
        if type(answers[-1]) is list:  # then the others are, too
            self._metrics.observe(key, now - started, len(answers))
            return answers
        for answer in answers:
            if isinstance(answer, Completion):
                answer.then(partial(self._observed_late, key, started, now))
            else:
                self._metrics.observe(key, now - started)
        return answers

    def _observed_late(
        self, key: int, started: float, waits_from: float, answer: list[Piece]
    ) -> list[Piece]:
        self._metrics.observe_waited(key, waits_from - started, self._monotonic() - waits_from)
        return answer

    def _decoded(self, connection: Connection, frame: Frame) -> AnyAnswer:
        key, version, correlation_id, client_id, header_size = decode_request_header(frame)
        api = self._apis.get(key)
        if (
            api is None
            or not api.first_version <= version <= api.last_version
            or (api.is_internal and not connection.is_inter_broker)
        ):
            return _not_offered(key, version, correlation_id, api)
        if not self._is_open and not (api.is_internal or key == ApiKey.API_VERSIONS):
            return self._when_open(connection, frame)
        started = self._monotonic()
        request = api.decode(version, frame, header_size)
        context = RequestContext(key, version, client_id or "", connection)
        reply = _Reply(
            api, version, correlation_id, request, started, self._metrics, self._monotonic
        )
        try:
            if self._steps:
                refused = self._refusal(context, request, (frame,))
                if refused is not None:
                    return reply.refused(refused)
                connection.admitted_requests -= 1
            result = api.handle(request, context)
            if api.fast_path is not None:
                api.fast_path.learn(frame, context, request)
            return reply.of(result)
        except MalformedMessage:
            raise
        except Exception:
            _logger.exception("%s v%d failed", api.key.title, version)
            return reply.refused(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _refusal(
        self, context: RequestContext, request: Any, frames: Sequence[Frame]
    ) -> ErrorCode | None:
        """The error with which a step refuses the requests, if one does. Requests that pass are noted, because a step sees each frame once."""
        connection = context.connection
        if not connection.admitted_requests:
            for step in self._steps:
                refused = step(context, request, frames)
                if refused is not None:
                    return refused
            connection.admitted_requests = len(frames)
        return None

    def _refused(
        self, context: RequestContext, request: Any, frames: Sequence[Frame], refused: ErrorCode
    ) -> Sequence[Answer]:
        api, version, started = self._apis[context.api_key], context.version, self._monotonic()
        ids = [decode_request_header(frame).correlation_id for frame in frames]
        return [
            _Reply(api, version, each, request, started, self._metrics, self._monotonic).refused(
                refused
            )
            for each in ids
        ]

    async def _when_open(self, connection: Connection, frame: Frame) -> Answer | DelayedAnswer:
        await self._opened.wait()
        answer = self._decoded(connection, frame)
        return await answer if asyncio.iscoroutine(answer) else cast(Answer, answer)


def _not_offered(key: int, version: int, correlation_id: int, api: BoundApi | None) -> list[Piece]:
    if api is not None and api.key == ApiKey.API_VERSIONS:
        body = unsupported_version_answer(api.first_version, api.last_version)
        return _frame(api, 0, correlation_id, [body])
    raise MalformedMessage(f"API {key} version {version} is not offered here")


class _Reply:
    """Encodes and measures the answer to one request."""

    __slots__ = (
        "_api",
        "_correlation_id",
        "_metrics",
        "_monotonic",
        "_request",
        "_started",
        "_version",
        "_waits_from",
    )

    def __init__(
        self,
        api: BoundApi,
        version: int,
        correlation_id: int,
        request: Any,
        started: float,
        metrics: RequestMetrics,
        monotonic: Callable[[], float],
    ) -> None:
        self._api = api
        self._version = version
        self._correlation_id = correlation_id
        self._request = request
        self._started = started
        self._waits_from: float | None = None
        self._metrics = metrics
        self._monotonic = monotonic

    def of(self, result: Body | Completion | Coroutine[Any, Any, Body | Completion]) -> AnyAnswer:
        if type(result) is list:  # first, because it is what the busiest APIs return
            return self.to(result)
        if type(result) is Completion:
            self._waits_from = self._monotonic()
            self._request = None  # its frame is used again meanwhile
            result.then(self.to)
            return result
        if asyncio.iscoroutine(result):
            self._waits_from = self._monotonic()
            return self._awaited(result)
        return self.to(cast(Body, result))

    def to(self, body: Body) -> Answer:
        now, waits_from = self._monotonic(), self._waits_from
        if waits_from is None:
            self._metrics.observe(self._api.key, now - self._started)
        else:
            local_s, remote_s = waits_from - self._started, now - waits_from
            self._metrics.observe_waited(self._api.key, local_s, remote_s)
        if body is None:
            return None
        if isinstance(body, list):
            pieces = body
            if isinstance(body, EncodedAnswer):
                self._metrics.count_errors(self._api.key, body.errors)
        else:
            self._metrics.observe_errors(self._api.key, body)
            pieces = encode_pieces(body, self._version)
        return _frame(self._api, self._version, self._correlation_id, pieces)

    def refused(self, error_code: ErrorCode) -> Answer:
        """The same error for everything that was asked for."""
        return self.to(error_answer(self._api.key, self._version, self._request, error_code))

    async def _awaited(
        self, work: Coroutine[Any, Any, Body | Completion]
    ) -> Answer | DelayedAnswer:
        try:
            result = await work
            if type(result) is Completion:  # the connection goes on meanwhile
                result.then(self.to)
                return result
            return self.to(cast(Body, result))
        except MalformedMessage:
            raise
        except Exception:
            _logger.exception("%s v%d failed", self._api.key.title, self._version)
            return self.refused(ErrorCode.UNKNOWN_SERVER_ERROR)


def _frame(api: BoundApi, version: int, correlation_id: int, body: list[Piece]) -> list[Piece]:
    body_bytes = sum(map(len, body))
    start = encode_response_start(correlation_id, body_bytes, has_tags=version >= api.tags_from)
    if len(body) == 1 and body_bytes < _JOINED_BYTES:
        return [start + body[0]]
    return [start, *body]
