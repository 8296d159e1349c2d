"""ASGI middleware: keeps the answers to look-ups of schemas by id, the requests that serializers send most.

An answer holds as long as the state of the registry does not change: `change_number` says so, and any change empties the
cache. Kept as bytes with their headers, by path and query, so that a hit needs no routing. Authentication, metrics and the
choice of a media type are outside of it, and so apply to every request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headrace.registry.http.service import FORWARDED

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BYTES: Final = 16 << 20
_MAX_ANSWER_BYTES: Final = 64 << 10
_ENTRY_BYTES: Final = 1000  # of headers and keys, roughly
_PATH: Final = b"/schemas/ids/"
# These are judged by another process: an answer after a time-out must not be kept.
_JUDGED: Final = (b"format", b"findTags")
_FORWARDED: Final = FORWARDED.encode()


class _Answer(NamedTuple):
    headers: list[tuple[bytes, bytes]]
    body: bytes
    route: Any  # for metrics


class AnswerCache:
    """Serves look-ups from memory, and everything else from the application."""

    def __init__(
        self, app: ASGIApp, change_number: Callable[[], int], max_bytes: int = MAX_BYTES
    ) -> None:
        self._app = app
        self._change_number = change_number
        self._max_bytes = max_bytes
        self._answers: dict[tuple[bytes, bytes], _Answer] = {}
        self._bytes = 0
        self._valid_for = -1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if (
            scope["type"] != "http"
            or scope["method"] != "GET"
            or not scope["raw_path"].startswith(_PATH)
        ):
            await self._app(scope, receive, send)
            return
        number = self._change_number()
        if number != self._valid_for:
            self._answers.clear()
            self._bytes, self._valid_for = 0, number
        key = scope["raw_path"], scope["query_string"]
        # Of a forwarded request the alias in `subject` is not replaced again.
        is_forwarded = any(name == _FORWARDED for name, _ in scope["headers"])
        known = None if is_forwarded else self._answers.get(key)
        if known is not None:
            scope["route"] = known.route
            start = {"type": "http.response.start", "status": 200, "headers": list(known.headers)}
            await send(start)
            await send({"type": "http.response.body", "body": known.body})
        elif is_forwarded or any(each in key[1] for each in _JUDGED):
            await self._app(scope, receive, send)
        else:
            await self._ask(scope, receive, send, key, number)

    async def _ask(
        self, scope: Scope, receive: Receive, send: Send, key: tuple[bytes, bytes], number: int
    ) -> None:
        headers: list[tuple[bytes, bytes]] | None = None
        body: bytes | None = None

        async def note(message: Message) -> None:
            nonlocal headers, body
            if message["type"] == "http.response.start" and message["status"] == 200:
                headers = list(message["headers"])
            elif headers is not None and body is None and not message.get("more_body"):
                body = message.get("body", b"")
            await send(message)

        await self._app(scope, receive, note)
        if headers is None or body is None or len(body) > _MAX_ANSWER_BYTES:
            return
        if number == self._valid_for == self._change_number() and key not in self._answers:
            self._bytes += len(body) + _ENTRY_BYTES
            if self._bytes > self._max_bytes:
                self._answers.clear()
                self._bytes = len(body) + _ENTRY_BYTES
            self._answers[key] = _Answer(headers, body, scope.get("route"))
