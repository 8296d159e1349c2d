"""The OpenAPI document of the registry's HTTP API, made from its operations. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from headrace import __version__
from headrace.registry.http.answers import MEDIA_TYPE, ErrorAnswer
from headrace.registry.http.operations import Operation, Query

Json = Any

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_JSON_TYPES: Final = {str: "string", int: "integer", bool: "boolean"}
_NUMBERS: Final = ("id",)
# What any request may be answered with, and what those with a body may be.
_ERRORS: Final = (404, 405, 406, 500)
_BODY_ERRORS: Final = (400, 408, 415, 422)
_ERROR_TEXTS: Final = {
    400: "The body is not JSON of this form",
    404: "There is no such thing",
    405: "There is no such method here",
    406: "The client accepts no media type that there is",
    408: "The body did not come in time",
    409: "The schema is not compatible with earlier versions",
    415: "The body is of another media type",
    422: "The request is not valid, or is not permitted",
    500: "The brokers or the primary did not answer",
    503: "The instance does not serve",
}


def document(operations: Sequence[Operation]) -> Json:
    """The document as JSON values."""
    kinds = [each for operation in operations for each in (operation.answers, operation.body)]
    kinds = [each for each in kinds if each is not None]
    shown, components = msgspec.json.schema_components([*kinds, ErrorAnswer], ref_template=_REF)
    schemas = {str(kind): shape for kind, shape in zip((*kinds, ErrorAnswer), shown, strict=True)}
    paths: dict[str, dict[str, Json]] = {}
    for operation in operations:
        described = _described(operation, schemas)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace schema registry", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


def _described(operation: Operation, schemas: dict[str, Json]) -> Json:
    described: dict[str, Json] = {
        "summary": operation.summary,
        "parameters": [
            *map(_path_parameter, _PARAMETER.findall(operation.path)),
            *map(_query_parameter, operation.query),
        ],
        "responses": {str(operation.status): _answer(operation, schemas)},
    }
    errors = {*_ERRORS, *operation.errors}
    if operation.body is not None:
        content = {MEDIA_TYPE: {"schema": schemas[str(operation.body)]}}
        described["requestBody"] = {"required": True, "content": content}
        errors |= {*_BODY_ERRORS}
    refusal = {"schema": schemas[str(ErrorAnswer)]}
    for status in sorted(errors):
        described["responses"][str(status)] = {
            "description": _ERROR_TEXTS[status],
            "content": {MEDIA_TYPE: refusal},
        }
    return described


def _answer(operation: Operation, schemas: dict[str, Json]) -> Json:
    described: dict[str, Json] = {"description": operation.summary}
    if operation.status != 204:
        media_type = operation.media_type or MEDIA_TYPE
        shape = {} if operation.answers is None else schemas[str(operation.answers)]
        described["content"] = {media_type: {"schema": shape}}
    return described


def _path_parameter(name: str) -> Json:
    kind = int if name in _NUMBERS else str
    return {"name": name, "in": "path", "required": True, "schema": {"type": _JSON_TYPES[kind]}}


def _query_parameter(query: Query) -> Json:
    shape: Json = {"type": _JSON_TYPES[query.kind]}
    if query.is_list:
        shape = {"type": "array", "items": shape}
    return {"name": query.name, "in": "query", "description": query.summary, "schema": shape}
