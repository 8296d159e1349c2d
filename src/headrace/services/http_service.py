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
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from headrace.services.request_metrics import RequestMetrics

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_access_log = logging.getLogger("headrace.access")
_GRACE_S: Final = 10
_BACKLOG: Final = 2048

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
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            seconds = time.perf_counter() - started
            route = scope.get("route")
            name = getattr(route, "path", "unknown")
            self._metrics.observe(scope["method"], name, status, seconds)
            if _access_log.isEnabledFor(logging.INFO):
                client = scope.get("client") or ("-",)
                _access_log.info(
                    "%s %s %r %d %.1f ms",
                    client[0],
                    scope["method"],
                    scope["path"],
                    status,
                    seconds * 1000,
                )


async def serve(
    app: Starlette,
    host: str,
    port: int,
    *,
    lifespan: Lifespan,
    on_ready: Callable[[int], None] = lambda _: None,
) -> None:
    """Serve until SIGINT or SIGTERM, or until cancelled. Raises OSError where the port is taken."""
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=_GRACE_S,
                backlog=_BACKLOG,
            )
        )
        server.capture_signals = nullcontext  # type: ignore[method-assign,assignment]  # ours are below
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, setattr, server, "should_exit", True)
        async with lifespan():
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            while not server.started and not serving.done():
                await asyncio.sleep(0.01)
            on_ready(listener.getsockname()[1])
            await serving
    finally:
        listener.close()
