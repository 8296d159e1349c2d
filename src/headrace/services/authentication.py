"""Who sends a request: an ASGI middleware that asks an authenticator, and a place for its answer.

Owns where the principal stands in a request (`principal_of`) and that nobody gets past without one. How somebody proves who
they are is the authenticator's; what they may do is the program's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

_KEY: Final = "headrace.principal"


class Principal(NamedTuple):
    """Somebody, by Kafka's form of a principal: `User:name`."""

    name: str

    def __str__(self) -> str:
        return f"User:{self.name}"


ANONYMOUS: Final = Principal("ANONYMOUS")

Authenticate = Callable[["Scope"], Awaitable["Principal | Response"]]
"""Who sends the request of an ASGI scope, or the answer that refuses it (401 with the challenge)."""


async def anonymous(_: Scope) -> Principal:
    """The authenticator of a program that asks nobody who they are."""
    return ANONYMOUS


class Authentication:
    """ASGI middleware. It stands behind the access log and in front of everything that acts on a request."""

    def __init__(self, app: ASGIApp, authenticate: Authenticate = anonymous) -> None:
        self._app = app
        self._authenticate = authenticate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        found = await self._authenticate(scope)
        if isinstance(found, Principal):
            scope[_KEY] = found
            await self._app(scope, receive, send)
        else:
            await found(scope, receive, send)


def principal_of(request: HTTPConnection) -> Principal:
    """Who sent a request that came through `Authentication`."""
    principal = request.scope[_KEY]
    assert isinstance(principal, Principal)
    return principal
