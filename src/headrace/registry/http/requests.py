"""Requests of the registry's HTTP API: path and query parameters, pages of listings, bodies with a size limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice
from typing import Final, TypeVar
from urllib.parse import unquote
from uuid import UUID

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from headrace.registry import errors
from headrace.registry.rules.lookup import MAX_ID
from headrace.registry.state.names import SubjectName, parse_subject
from headrace.schemas.formats.schema_format import MAX_SCHEMA_BYTES

T = TypeVar("T")

_MAX_BODY_BYTES: Final = 4 * MAX_SCHEMA_BYTES
_BODY_S: Final = 30.0
# Clients may say that a body is of any of these; bodies without a type are taken for JSON.
_BODY_TYPES: Final = (
    "",
    "application/vnd.schemaregistry.v1+json",
    "application/vnd.schemaregistry+json",
    "application/json",
    "application/octet-stream",
)
_MAX_OFFSET: Final = 2**31 - 1
MAX_SCHEMAS: Final = 1000  # in one answer; a larger limit counts as this one


def parameter(request: Request, name: str) -> str:
    """A part of the path, decoded."""
    return unquote(request.path_params[name])


def subject_in(request: Request) -> SubjectName:
    """The subject in the path."""
    return parse_subject(parameter(request, "subject"))


def id_in(request: Request) -> int:
    """The id in the path. Raises HTTPException where it is none."""
    text = request.path_params["id"]
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or abs(int(text)) > MAX_ID:
        raise HTTPException(404, "Not Found")
    return int(text)


def digest_in(request: Request) -> bytes | None:
    """The digest that a GUID in the path stands for; None where it is no GUID."""
    try:
        return UUID(parameter(request, "guid")).bytes
    except ValueError:
        return None


def flag(request: Request, name: str) -> bool:
    """Whether a query parameter is `true`."""
    return request.query_params.get(name, "false").lower() == "true"


def page(request: Request, items: Iterable[T], *, limit: int | None = None) -> list[T]:
    """The part of a listing that `offset` and `limit` ask for; never more than `limit`, if there is one."""
    start = min(max(_number(request, "offset", 0), 0), _MAX_OFFSET)
    asked: int | None = _number(request, "limit", -1)
    if asked is None or not 1 <= asked <= (_MAX_OFFSET if limit is None else limit):
        asked = limit
    return list(islice(items, start, None if asked is None else start + asked))


def _number(request: Request, name: str, default: int) -> int:
    try:
        return int(request.query_params.get(name, default))
    except ValueError:
        raise HTTPException(404, "Not Found") from None


async def read_body(request: Request) -> bytes:
    """The body. Raises RegistryError where it is longer than any schema may make it, and HTTPException."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in _BODY_TYPES:
        raise HTTPException(415, "Unsupported Media Type")
    pieces, size = [], 0
    try:
        async with asyncio.timeout(_BODY_S):
            async for piece in request.stream():
                size += len(piece)
                if size > _MAX_BODY_BYTES:
                    raise errors.schema_too_large(MAX_SCHEMA_BYTES)
                pieces.append(piece)
    except TimeoutError:
        raise HTTPException(408, "Request Timeout") from None
    # `request.body()` gives it to whoever forwards the request.
    request._body = b"".join(pieces)
    return request._body


async def decoded_body(request: Request, kind: type[T]) -> T:
    """The body as JSON of this form. Raises msgspec.MsgspecError, RegistryError, HTTPException."""
    body = await read_body(request)
    if body.strip() in (b"", b"null"):
        raise errors.no_body()
    return msgspec.json.decode(body, type=kind, strict=False)
