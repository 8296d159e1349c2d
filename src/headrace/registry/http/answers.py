"""Answers of the registry's HTTP API: bodies, errors, media types. Leaves the routes to `http`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.rules.lookup import FoundVersion
from headrace.registry.state.metadata import Metadata, RuleSet
from headrace.registry.state.records import ConfigValue, Reference, guid_of
from headrace.registry.state.scopes import settings_of
from headrace.schemas.formats.schema_format import TaggedEntity
from headrace.services.errors import exception_handlers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Json = Any

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MEDIA_TYPES: Final = (MEDIA_TYPE, "application/vnd.schemaregistry+json", "application/json")
_OTHER_PAGES: Final = ("/healthz", "/metrics", "/openapi.json")

_encode = msgspec.json.Encoder().encode


def answer(body: Json, *, status: int = 200, media_type: str = MEDIA_TYPE) -> Response:
    """An answer in JSON."""
    return Response(_encode(body), status_code=status, media_type=media_type)


def error_answer(status: int, code: int, message: str) -> Response:
    """A refusal in Confluent's form."""
    return answer(ErrorAnswer(code, message), status=status)


class Entity(msgspec.Struct, rename="camel"):
    """A record or a field of a schema."""

    entity_path: str
    entity_type: str


class SchemaTags(msgspec.Struct, rename="camel"):
    """A record or a field with its tags."""

    schema_entity: Entity
    tags: list[str]


def schema_tags(found: Sequence[TaggedEntity], wanted: Sequence[str]) -> list[SchemaTags]:
    """The records and fields that have one of these tags; `*` stands for all tags."""
    return [
        SchemaTags(Entity(each.path, each.kind), list(each.tags))
        for each in found
        if "*" in wanted or set(each.tags) & set(wanted)
    ]


class VersionAnswer(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    guid: str
    schema_type: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str
    schema_tags: list[SchemaTags] | None = None
    ts: int | None = None
    deleted: bool
    aliases: list[str] | None = None


class SchemaAnswer(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A schema by its id or GUID, with a version that has it."""

    subject: str | None = None
    version: int | None = None
    guid: str
    schema_type: str
    schema: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema_tags: list[SchemaTags] | None = None
    max_id: int | None = None
    ts: int | None = None
    deleted: bool


class RegisteredAnswer(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A schema that was registered, or was registered before."""

    id: int
    version: int
    guid: str
    schema_type: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str


class SubjectVersion(msgspec.Struct):
    """A version of a subject by its number."""

    subject: str
    version: int


class ContextId(msgspec.Struct):
    """An id in a context."""

    context: str
    id: int


class CompatibilityAnswer(msgspec.Struct, omit_defaults=True):
    """Whether a schema is compatible, and, if it was asked for, why it is not."""

    is_compatible: bool
    messages: list[str] | None = None


class ModeAnswer(msgspec.Struct):
    """A mode; null where a mode was taken away."""

    mode: str | None


class OldModeAnswer(msgspec.Struct, omit_defaults=True):
    """The mode that a scope had, if it had one."""

    mode: str | None = None


class ErrorAnswer(msgspec.Struct):
    """A refusal."""

    error_code: int
    message: str


def version_answer(found: FoundVersion, text: str | None = None) -> VersionAnswer:
    """A version as it is answered; `text` is its schema in the form that was asked for."""
    schema = found.schema
    return VersionAnswer(
        subject=found.subject,
        version=found.number,
        id=found.version.schema_id,
        guid=guid_of(schema.digest),
        schema_type=schema.schema_type,
        references=schema.references,
        metadata=schema.metadata,
        rule_set=schema.rule_set,
        schema=schema.text if text is None else text,
        ts=found.version.timestamp,
        deleted=found.version.is_deleted,
    )


def schema_answer(found: FoundVersion, text: str) -> SchemaAnswer:
    """A schema as it is answered."""
    schema = found.schema
    return SchemaAnswer(
        subject=found.subject,
        version=found.number,
        guid=guid_of(schema.digest),
        schema_type=schema.schema_type,
        schema=text,
        references=schema.references,
        metadata=schema.metadata,
        rule_set=schema.rule_set,
        ts=found.version.timestamp,
        deleted=found.version.is_deleted,
    )


def registered_answer(found: FoundVersion, text: str | None = None) -> RegisteredAnswer:
    """A registered schema as it is answered."""
    schema = found.schema
    return RegisteredAnswer(
        id=found.version.schema_id,
        version=found.number,
        guid=guid_of(schema.digest),
        schema_type=schema.schema_type,
        references=schema.references,
        metadata=schema.metadata,
        rule_set=schema.rule_set,
        schema=schema.text if text is None else text,
    )


def config_body(config: ConfigValue, *, level_name: str = "compatibilityLevel") -> dict[str, Json]:
    """Compatibility settings as they are answered: what is not set is left out."""
    named = {camel(name): value for name, value in settings_of(config).items()}
    return {
        level_name if key == "compatibilityLevel" else key: value for key, value in named.items()
    }


def camel(name: str) -> str:
    """The attribute of a JSON object that stands for one of ours."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


# ---- errors


async def _refused(_: Request, refusal: errors.RegistryError) -> Response:
    return error_answer(refusal.status, refusal.code, refusal.message)


def _error(_: Request, status: int, code: int, message: str) -> Response:
    return error_answer(status, code, message)


def _defect(_: Request, defect: Exception) -> Response:
    return error_answer(500, 50001, f"Error in the backend data store - {type(defect).__name__}")


EXCEPTION_HANDLERS: Final[Mapping[Any, Any]] = {
    errors.RegistryError: _refused,
    **exception_handlers(_error, defect=_defect, wrong_form=400),
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
