"""An HTTP program: a Starlette application served by uvicorn until a signal, with access log, metrics and health. A rim module.

It knows nothing of what it serves. Start-up and shutdown of the program's own parts are its `lifespan`; whatever fails
there ends the program with that error, before the port answers.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

import uvicorn

from headrace.services.header_deadline import protocol_with_deadline
from headrace.services.request_metrics import RequestMetrics

if TYPE_CHECKING:
    import ssl

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_access_log = logging.getLogger("headrace.access")
_GRACE_S: Final = 10
_BACKLOG: Final = 2048
# uvloop accepts one connection of a listening socket in each iteration of the event loop. Under load an iteration takes
# many milliseconds, and new clients would wait for seconds. The same socket several times lets in more of them.
_LISTENERS: Final = 16

Lifespan = Callable[[], AbstractAsyncContextManager[None]]


class Watched:
    """ASGI middleware: counts, times and logs every request by its route, not by its path."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        path = scope["path"]  # what was asked for; the program may route by another path
        status, received, sent = 500, 0, 0

        async def watch(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                sent += len(message.get("body", b""))
            await send(message)

        async def count() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        try:
            await self._app(scope, count, watch)
        finally:
            seconds = time.perf_counter() - started
            route = scope.get("route")
            name = getattr(route, "path", "unknown")
            self._metrics.observe(
                scope["method"], name, status, seconds, request_bytes=received, response_bytes=sent
            )
            if _access_log.isEnabledFor(logging.INFO):
                _log_access(scope, path, status, seconds)


def _log_access(scope: Scope, path: str, status: int, seconds: float) -> None:
    client = scope.get("client") or ("-",)
    given = (client[0], scope["method"], path, status, seconds * 1000)
    # Not `info`: it would look up the calling line, which no log line shows, for each request.
    _access_log.handle(
        _access_log.makeRecord(
            _access_log.name, logging.INFO, "", 0, "%s %s %r %d %.1f ms", given, None
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address and does not accept connections yet. Raises OSError where it is taken."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def new_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where there is one, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


class _Server(uvicorn.Server):
    """uvicorn's server, which tells when it accepts connections and leaves signals to us."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def serve(  # noqa: PLR0913 (each is one rule of the listener)
    app: ASGIApp,
    listener: socket.socket,
    *,
    lifespan: Lifespan,
    on_ready: Callable[[], None],
    on_stop: Callable[[], None] = lambda: None,
    max_connections: int | None = None,
    headers_timeout_s: float = 30.0,
    tls: ssl.SSLContext | None = None,
    metrics: RequestMetrics | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; requests under way are answered first. With `tls`, over HTTPS.

    `on_stop` is called when the signal comes, so that requests that last as long as their client likes can end.
    Connections beyond `max_connections` are answered with 503. One that has not sent the headers of a request within
    `headers_timeout_s` is closed. `metrics` counts the connections.
    """
    config = uvicorn.Config(
        app,
        http=protocol_with_deadline(headers_timeout_s, metrics),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
        backlog=_BACKLOG,
        limit_concurrency=max_connections,
        ssl_context_factory=None if tls is None else lambda _, __: tls,
    )
    server = _Server(config, on_ready)
    loop = asyncio.get_running_loop()
    opened = asyncio.ensure_future(_run(server, listener, lifespan))

    def stop() -> None:
        server.should_exit = True
        on_stop()
        if not server.started:
            opened.cancel()  # the program's own parts are still starting

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    try:
        await opened
    except asyncio.CancelledError:
        if not server.should_exit:
            raise


async def _run(server: uvicorn.Server, listener: socket.socket, lifespan: Lifespan) -> None:
    async with lifespan():
        with ExitStack() as copies:
            more = [copies.enter_context(listener.dup()) for _ in range(_LISTENERS - 1)]
            await server.serve(sockets=[listener, *more])
