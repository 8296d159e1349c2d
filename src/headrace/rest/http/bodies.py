"""Request bodies: read within a limit of size, time and memory, and decoded into their form."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection
from typing import Final, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from headrace.rest import errors
from headrace.rest.media_types import charset_is_supported, essence
from headrace.rest.memory_budget import MemoryBudget

T = TypeVar("T")

_BODY_S: Final = 60.0
_UNKNOWN_FIELD: Final = re.compile(r"Object contains unknown field `(.*?)`")
_GREATEST_INT: Final = 2**31 - 1


class Bodies:
    """Reads bodies of requests. All of them together take no more memory than `buffer_bytes`."""

    def __init__(self, *, max_bytes: int, buffer_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._budget = MemoryBudget(buffer_bytes)

    async def form(self, request: Request, kind: type[T], media_types: Collection[str]) -> T | None:
        """The body as JSON of this form; None where it is empty. Raises RestError."""
        require_media_type(request, media_types)
        data = await self._read(request)
        if not data.strip() or data == b"null":
            return None
        return decode(data, kind)

    async def required_form(
        self, request: Request, kind: type[T], media_types: Collection[str], missing: str
    ) -> T:
        """The body as JSON of this form. Raises RestError; where it is empty, with the text `missing`."""
        found = await self.form(request, kind, media_types)
        if found is None:
            raise errors.invalid_payload(missing)
        return found

    async def _read(self, request: Request) -> bytes:
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(_BODY_S):
                async for piece in request.stream():
                    if size + len(piece) > self._max_bytes:
                        raise errors.too_large(self._max_bytes)
                    if not self._budget.take(id(request), len(piece)):
                        raise errors.overloaded("Too many large requests are being read.")
                    size += len(piece)
                    pieces.append(piece)
        except TimeoutError:
            raise HTTPException(408, "Request Timeout") from None
        finally:
            if size:
                self._budget.give(id(request), size)
        return b"".join(pieces)


def require_media_type(request: Request, media_types: Collection[str]) -> None:
    """Raises RestError where a body is of another media type."""
    given = request.headers.get("content-type", "")
    if essence(given) not in media_types:
        raise errors.unsupported_media_type()
    if not charset_is_supported(given):
        raise errors.RestError(
            400,
            400,
            'Unsupported charset in Content-Type header. Supports "UTF-8" and "ISO-8859-1".',
        )


def decode(data: bytes, kind: type[T]) -> T:
    """JSON of this form. Raises RestError."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as wrong:
        raise of_validation(wrong) from wrong
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise errors.RestError(400, 400, f"the body is not JSON: {wrong}") from wrong
    except RecursionError:
        raise errors.RestError(400, 400, "the body is nested too deeply") from None


def of_validation(wrong: msgspec.ValidationError) -> errors.RestError:
    """The answer where JSON is not of the form that was expected."""
    unknown = _UNKNOWN_FIELD.match(str(wrong))
    if unknown is not None:
        return errors.unprocessable(f"Unrecognized field: {unknown[1]}")
    return errors.RestError(400, 400, str(wrong))


def whole_number(request: Request, name: str) -> int:
    """A number in the path. What is none leads nowhere. Raises RestError."""
    text = request.path_params[name]
    try:
        number = int(text)
    except ValueError:
        raise errors.not_found() from None
    if not text.isascii() or not -_GREATEST_INT <= number <= _GREATEST_INT:
        raise errors.not_found()
    return number
