"""Errors that every HTTP program answers in its own form."""

import asyncio

import msgspec
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from headrace.services.errors import exception_handlers


def answer(_: Request, status: int, code: int, message: str) -> Response:
    return PlainTextResponse(f"{code} {message}", status)


def defect(_: Request, error: Exception) -> Response:
    return PlainTextResponse(type(error).__name__, 500)


HANDLERS = exception_handlers(answer, defect=defect)


def handled(error: Exception) -> Response:
    kind = next(kind for kind in type(error).__mro__ if kind in HANDLERS)
    request = Request({"type": "http", "headers": []})
    return asyncio.run(HANDLERS[kind](request, error))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (HTTPException(404, "Not Found"), 404, b"404 HTTP 404 Not Found"),
        (msgspec.ValidationError("Expected int"), 422, b"422 Expected int"),
        (msgspec.DecodeError("truncated"), 400, b"400 the body is not JSON: truncated"),
        (RecursionError(), 422, b"422 the body is nested too deeply"),
        (ClientDisconnect(), 499, b""),
        (KeyError("a defect"), 500, b"KeyError"),
    ],
)
def test_the_answer_has_the_form_of_the_program(error: Exception, status: int, body: bytes) -> None:
    response = handled(error)
    assert (response.status_code, response.body) == (status, body)


def test_headers_of_a_refusal_stay() -> None:
    response = handled(HTTPException(405, "Method Not Allowed", {"Allow": "GET"}))
    assert response.headers["allow"] == "GET"
