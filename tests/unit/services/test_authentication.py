"""Nobody gets past the authenticator, and whoever does is known to the program."""

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from headrace.services.authentication import (
    ANONYMOUS,
    Authenticate,
    Authentication,
    Principal,
    principal_of,
)


async def application(scope: Any, receive: Any, send: Any) -> None:
    await PlainTextResponse(str(principal_of(Request(scope))))(scope, receive, send)


def ask(authenticate: Authenticate | None, headers: dict[str, str]) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        raise AssertionError("nobody reads the body")

    async def send(message: Any) -> None:
        sent.append(message)

    app = (
        Authentication(application)
        if authenticate is None
        else Authentication(application, authenticate)
    )
    scope = {
        "type": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], sent[1]["body"]


async def by_header(scope: Any) -> Principal | Response:
    user = Request(scope).headers.get("user")
    if user is None:
        return Response(status_code=401, headers={"WWW-Authenticate": "Basic"})
    return Principal(user)


def test_without_an_authenticator_everybody_is_anonymous() -> None:
    assert ask(None, {"user": "alice"}) == (200, b"User:ANONYMOUS")
    assert Principal("ANONYMOUS") == ANONYMOUS


def test_the_program_knows_who_asks() -> None:
    assert ask(by_header, {"user": "alice"}) == (200, b"User:alice")


def test_a_refused_request_does_not_reach_the_program() -> None:
    assert ask(by_header, {}) == (401, b"")


def test_what_is_no_request_passes() -> None:
    seen: list[str] = []

    async def program(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["type"])

    async def nobody(_: Any) -> Principal:
        raise AssertionError

    asyncio.run(Authentication(program, nobody)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert seen == ["lifespan"]
