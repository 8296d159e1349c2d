"""Answers of the registry's HTTP API: bodies, errors, media types. Leaves the routes to `http`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.records import ConfigValue, guid_of
from headrace.registry.subjects import Schema, Version

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Json = Any

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MEDIA_TYPES: Final = (MEDIA_TYPE, "application/vnd.schemaregistry+json", "application/json")
_OTHER_PAGES: Final = ("/healthz", "/metrics")

_encode = msgspec.json.Encoder().encode


def answer(body: Json, *, status: int = 200, media_type: str = MEDIA_TYPE) -> Response:
    """An answer in JSON."""
    return Response(_encode(body), status_code=status, media_type=media_type)


def error_answer(status: int, code: int, message: str) -> Response:
    """A refusal in Confluent's form."""
    return answer({"error_code": code, "message": message}, status=status)


def schema_body(text: str, schema: Schema) -> dict[str, Json]:
    """A schema as it is answered: what is empty is left out, and so is the type AVRO."""
    body: dict[str, Json] = {}
    if schema.schema_type != "AVRO":
        body["schemaType"] = schema.schema_type
    if schema.references:
        body["references"] = schema.references
    if schema.metadata is not None:
        body["metadata"] = schema.metadata
    if schema.rule_set is not None:
        body["ruleSet"] = schema.rule_set
    return body | {"schema": text}


def version_body(subject: str, number: int, version: Version, schema: Schema) -> dict[str, Json]:
    """A version of a subject as it is answered."""
    body: dict[str, Json] = {"subject": subject, "version": number, "id": version.schema_id}
    body["guid"] = guid_of(schema.digest)
    if version.is_deleted:
        body["deleted"] = True
    return body | schema_body(schema.text, schema)


def config_body(config: ConfigValue) -> Mapping[str, Json]:
    """Compatibility settings as they are answered: what is not set is left out."""
    return {
        camel(name): value
        for name, value in msgspec.structs.asdict(config).items()
        if value is not None
    }


def camel(name: str) -> str:
    """The attribute of a JSON object that stands for one of ours."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


# ---- errors


async def _refused(_: Request, refusal: errors.RegistryError) -> Response:
    return error_answer(refusal.status, refusal.code, refusal.message)


async def _http_error(_: Request, error: HTTPException) -> Response:
    code = error.status_code
    return error_answer(code, code, f"HTTP {code} {error.detail}")


async def _bad_body(_: Request, wrong: Exception) -> Response:
    if isinstance(wrong, msgspec.ValidationError):
        return error_answer(422, 422, str(wrong))
    if isinstance(wrong, RecursionError):
        return error_answer(422, 422, "the body is nested too deeply")
    return error_answer(400, 400, f"the body is not JSON: {wrong}")


async def _gone(_: Request, __: ClientDisconnect) -> Response:
    return Response(status_code=499)


async def _failed(_: Request, bug: Exception) -> Response:
    return error_answer(500, 50001, f"Error in the backend data store - {type(bug).__name__}")


EXCEPTION_HANDLERS: Final[Mapping[Any, Any]] = {
    errors.RegistryError: _refused,
    HTTPException: _http_error,
    msgspec.MsgspecError: _bad_body,
    RecursionError: _bad_body,
    UnicodeDecodeError: _bad_body,
    ClientDisconnect: _gone,
    Exception: _failed,
}


# ---- media types


def accepted(accept: str) -> str | None:
    """The media type to answer with; None if the client accepts none that there is."""
    if not accept.strip():
        return MEDIA_TYPE
    offers: list[tuple[float, str]] = []
    for part in accept.split(","):
        kind, *parameters = (each.strip().lower() for each in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        if kind in ("*/*", "application/*"):
            kind = MEDIA_TYPE
        if kind in _MEDIA_TYPES and weight > 0:
            offers.append((weight, kind))
    return max(offers, key=lambda offer: offer[0])[1] if offers else None


class Negotiation:
    """ASGI middleware: answers in the media type that the client accepts, or with 406."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] in _OTHER_PAGES:
            await self._app(scope, receive, send)
            return
        accept = b",".join(value for name, value in scope["headers"] if name == b"accept")
        media_type = accepted(accept.decode("latin-1"))
        if media_type == MEDIA_TYPE:
            await self._app(scope, receive, send)
            return
        if media_type is None:
            refusal = error_answer(406, 406, "HTTP 406 Not Acceptable")
            await refusal(scope, receive, send)
            return
        chosen = media_type.encode()

        async def answer_with(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [
                    (name, chosen if name == b"content-type" else value)
                    for name, value in message["headers"]
                ]
            await send(message)

        await self._app(scope, receive, answer_with)
