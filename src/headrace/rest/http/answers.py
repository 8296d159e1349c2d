"""Answers of the HTTP API: JSON in the media type of the version, and errors in Confluent's form."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.rest import errors
from headrace.rest.media_types import JSON, V2_ANSWERS, accepted
from headrace.services.errors import exception_handlers

Json = Any

_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


def answer(body: Json, *, status: int = 200, media_type: str = JSON) -> Response:
    """An answer in JSON."""
    return Response(_encode(body), status_code=status, media_type=media_type)


def v2_answer(request: Request, body: Json) -> Response:
    """An answer of version 2, in the media type that the client accepts. Raises RestError where it accepts none."""
    return answer(body, media_type=v2_media_type(request))


def v2_media_type(request: Request) -> str:
    """The media type of an answer of version 2. Raises RestError where the client accepts none."""
    found = accepted(request.headers.get("accept", ""), V2_ANSWERS)
    if found is None:
        raise errors.not_acceptable()
    return found


def nothing() -> Response:
    """Done, and there is nothing to tell."""
    return Response(status_code=204)


def _error(request: Request, status: int, code: int, message: str) -> Response:
    media_type: str | None = JSON
    if not request.url.path.startswith("/v3/"):
        media_type = accepted(request.headers.get("accept", ""), V2_ANSWERS) or JSON
    return answer(
        {"error_code": code, "message": message}, status=status, media_type=media_type or JSON
    )


async def _refused(request: Request, refusal: errors.RestError) -> Response:
    return _error(request, refusal.status, refusal.code, refusal.message)


def _defect(request: Request, bug: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=bug)
    return _error(request, 500, 500, f"Internal Server Error: {type(bug).__name__}")


EXCEPTION_HANDLERS: Final[Mapping[Any, Any]] = {
    errors.RestError: _refused,
    **exception_handlers(_error, defect=_defect),
}
