"""Requests of the registry's HTTP API: query parameters, scopes, pages of listings, bodies with a size limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from headrace.registry import errors
from headrace.registry.decisions import Wanted
from headrace.registry.formats.schema_format import MAX_SCHEMA_BYTES
from headrace.registry.names import parse_subject
from headrace.registry.subjects import Schema

T = TypeVar("T")

_MAX_BODY_BYTES: Final = 4 * MAX_SCHEMA_BYTES
_BODY_S: Final = 30.0
_Optional = msgspec.UnsetType


class ConfigChange(msgspec.Struct, kw_only=True, rename="camel"):
    """A PUT of settings; what it does not name stays as it is."""

    compatibility: str | _Optional | None = msgspec.UNSET
    compatibility_level: str | _Optional | None = msgspec.UNSET
    alias: str | _Optional | None = msgspec.UNSET
    normalize: bool | _Optional | None = msgspec.UNSET
    validate_fields: bool | _Optional | None = msgspec.UNSET
    validate_rules: bool | _Optional | None = msgspec.UNSET
    compatibility_policy: str | _Optional | None = msgspec.UNSET
    compatibility_group: str | _Optional | None = msgspec.UNSET
    default_metadata: dict[str, Any] | _Optional | None = msgspec.UNSET
    override_metadata: dict[str, Any] | _Optional | None = msgspec.UNSET
    default_rule_set: dict[str, Any] | _Optional | None = msgspec.UNSET
    override_rule_set: dict[str, Any] | _Optional | None = msgspec.UNSET

    def named(self) -> dict[str, Any]:
        """The settings that the request names."""
        return {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if value is not msgspec.UNSET
        }


class ModeChange(msgspec.Struct):
    """A PUT of a mode."""

    mode: str


class _Entity(msgspec.Struct, kw_only=True, rename="camel"):
    entity_path: str
    entity_type: str = ""


class _Tags(msgspec.Struct, kw_only=True, rename="camel"):
    schema_entity: _Entity
    tags: list[str] = []


class TagsChange(msgspec.Struct, kw_only=True, rename="camel"):
    """A POST of tags; `new_version` is the number that the version with them is to get."""

    new_version: int | None = None
    tags_to_add: list[_Tags] = []
    tags_to_remove: list[_Tags] = []
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None


def tagged(schema: Schema, change: TagsChange) -> Wanted:
    """The schema with other tags, in its metadata: its text stays as its author wrote it."""
    metadata = dict(change.metadata or schema.metadata or {})
    tags = {path: list(found) for path, found in (metadata.get("tags") or {}).items()}
    for added in change.tags_to_add:
        here = tags.setdefault(added.schema_entity.entity_path, [])
        here += [tag for tag in added.tags if tag not in here]
    for removed in change.tags_to_remove:
        path = removed.schema_entity.entity_path
        tags[path] = [tag for tag in tags.get(path, []) if tag not in removed.tags]
    metadata["tags"] = {path: found for path, found in tags.items() if found}
    return Wanted(
        schema=schema.text,
        schema_type=schema.schema_type,
        references=schema.references,
        metadata=metadata,
        rule_set=change.rule_set or schema.rule_set,
    )


def scope_of(request: Request) -> str | None:
    """The subject or context whose settings are meant; None: those of all."""
    subject = request.path_params.get("subject")
    if subject is None or subject in ("__GLOBAL", ":.__GLOBAL:"):
        return None
    name = parse_subject(subject)
    return str(name) if name.name else f":{name.context}:"


def flag(request: Request, name: str) -> bool:
    """Whether a query parameter is `true`."""
    return request.query_params.get(name, "false").lower() == "true"


def page(request: Request, items: Iterable[T]) -> list[T]:
    """The part of a listing that `offset` and `limit` ask for."""
    found = list(items)
    try:
        offset = int(request.query_params.get("offset", "0"))
        limit = int(request.query_params.get("limit", "-1"))
    except ValueError:
        raise HTTPException(404, "Not Found") from None
    start = max(offset, 0)
    return found[start:] if limit < 0 else found[start : start + limit]


def digest_in(request: Request) -> bytes:
    """The digest that a GUID in the path stands for. Raises RegistryError."""
    text = request.path_params["guid"]
    try:
        return UUID(text).bytes
    except ValueError:
        raise errors.schema_not_found(text) from None


async def read_body(request: Request) -> bytes:
    """The body. Raises RegistryError where it is longer than any schema may make it."""
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
    """The body as JSON of this form. Raises msgspec.MsgspecError, RegistryError."""
    return msgspec.json.decode(await read_body(request) or b"{}", type=kind)
