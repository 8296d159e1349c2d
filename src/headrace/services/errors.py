"""Errors that every HTTP program answers: unknown paths, bodies that are no JSON, clients that went away, defects.

A program brings the form of an error (`ErrorAnswer`) and adds handlers for its own exceptions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

ErrorAnswer = Callable[[Request, int, int, str], Response]
"""The answer to a request: HTTP status, the program's own error code and a message, in the form of the program."""

Handler = Callable[[Request, Any], Awaitable[Response]]


def exception_handlers(
    answer: ErrorAnswer, *, defect: Callable[[Request, Exception], Response], wrong_form: int = 422
) -> Mapping[Any, Handler]:
    """Handlers for Starlette, by exception. `defect` is the answer to what should not happen, `wrong_form` the status of
    a body that is JSON of another form.
    """

    async def http_error(request: Request, error: HTTPException) -> Response:
        code = error.status_code
        refused = answer(request, code, code, f"HTTP {code} {error.detail}")
        refused.headers.update(error.headers or {})  # which methods a path allows
        return refused

    async def bad_body(request: Request, wrong: Exception) -> Response:
        if isinstance(wrong, msgspec.ValidationError):
            return answer(request, wrong_form, wrong_form, str(wrong))
        if isinstance(wrong, RecursionError):
            return answer(request, wrong_form, wrong_form, "the body is nested too deeply")
        return answer(request, 400, 400, f"the body is not JSON: {wrong}")

    async def gone(_: Request, __: ClientDisconnect) -> Response:
        return Response(status_code=499)  # nobody reads it; it counts in the metrics

    async def failed(request: Request, error: Exception) -> Response:
        return defect(request, error)

    return {
        HTTPException: http_error,
        msgspec.MsgspecError: bad_body,
        RecursionError: bad_body,
        UnicodeDecodeError: bad_body,
        ClientDisconnect: gone,
        Exception: failed,
    }
