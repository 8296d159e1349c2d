"""JSON Schema: drafts 4 to 2020-12, checked against their own schemas by jsonschema-rs; canonical text is compact JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from headrace.registry.formats.json_compatibility import compare_documents
from headrace.registry.formats.schema_format import MAX_DEPTH, Difference, InvalidSchema

if TYPE_CHECKING:
    from headrace.registry.formats.schema_format import ParsedSchema

Json = Any


class JsonSchemaFormat:
    """The language JSON."""

    NAME: Final = "JSON"

    def parse(
        self, text: str, references: Mapping[str, str], *, is_new: bool = True
    ) -> ParsedSchema:
        """Parse a schema; a reference's name is the address under which the schema refers to it."""
        document = _load(text)
        others = {name: _load(other) for name, other in references.items()}
        if is_new:
            _check(document)
            _check_refs(document, others)
        return JsonSchema(document, others)


class JsonSchema:
    """A parsed schema with the documents that it refers to."""

    def __init__(self, document: Json, others: dict[str, Json]) -> None:
        self._document = document
        self._others = others

    def canonical(self) -> str:
        """Compact JSON with the keys in their order."""
        return _compact(self._document)

    def normalized(self) -> str:
        """Compact JSON with the keys sorted."""
        return _compact(self._document, sort_keys=True)

    def can_read(self, writer: ParsedSchema) -> list[Difference]:
        """Every document that is valid for the writer's schema must be valid for this one."""
        theirs = cast(JsonSchema, writer)
        return compare_documents(
            reader=self._document,
            reader_others=self._others,
            writer=theirs._document,
            writer_others=theirs._others,
        )


def _compact(document: Json, *, sort_keys: bool = False) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)


def _load(text: str) -> Json:
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
    except ValueError as wrong:
        raise InvalidSchema(f"not JSON: {wrong}") from None
    if not isinstance(document, dict | bool):
        raise InvalidSchema("a JSON schema is an object or a boolean")
    _check_depth(document)
    return document


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not JSON")


def _check_depth(document: Json) -> None:
    level = [document]
    for _ in range(4 * MAX_DEPTH):
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise InvalidSchema(f"the schema is nested more than {4 * MAX_DEPTH} levels deep")


def _check(document: Json) -> None:
    import jsonschema_rs

    try:
        jsonschema_rs.meta.validate(document)
    except jsonschema_rs.ValidationError as wrong:
        raise InvalidSchema(str(wrong.message)) from None
    except Exception as wrong:  # noqa: BLE001 - whatever the library says of a schema, the schema is at fault
        raise InvalidSchema(str(wrong)) from None


def _check_refs(document: Json, others: Mapping[str, Json]) -> None:
    """References into the document, or to documents that were not given, must lead somewhere."""
    from headrace.registry.formats.json_compatibility import Documents

    documents = Documents(document, others)
    stack = [document]
    while stack:
        each = stack.pop()
        if isinstance(each, list):
            stack += each
        elif isinstance(each, dict):
            ref = each.get("$ref")
            if isinstance(ref, str) and documents.find(ref, documents.root) is None:
                raise InvalidSchema(f"unresolved reference '{ref}'")
            stack += each.values()
