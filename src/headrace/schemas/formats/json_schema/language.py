"""The schema language JSON: drafts 4 to 2020-12 of JSON Schema; canonical text is compact JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from headrace.schemas.formats.java_json import quoted
from headrace.schemas.formats.json_schema.compatibility import compare_documents
from headrace.schemas.formats.json_schema.tags import change_tags, tagged_entities
from headrace.schemas.formats.json_schema.tree import check
from headrace.schemas.formats.schema_format import (
    MAX_DEPTH,
    Difference,
    InvalidSchema,
    TaggedEntity,
)

if TYPE_CHECKING:
    from headrace.schemas.formats.schema_format import ParsedSchema

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
            check(document, others)
        return JsonSchema(document, others)


class JsonSchema:
    """A parsed schema with the documents that it refers to."""

    def __init__(self, document: Json, others: dict[str, Json]) -> None:
        self._document = document
        self._others = others

    @property
    def document(self) -> Json:
        """The schema as JSON values; numbers with a point are Decimals."""
        return self._document

    def canonical(self) -> str:
        """Compact JSON with the keys in their order."""
        return _compact(self._document)

    def normalized(self) -> str:
        """Compact JSON with the keys sorted."""
        return _compact(self._document, sort_keys=True)

    def formatted(self, form: str) -> str:
        """There is no other form."""
        return self.canonical()

    def tags(self) -> list[TaggedEntity]:
        """The objects and properties with the keyword `confluent:tags`."""
        return list(tagged_entities(self._document))

    def tagged(self, add: Sequence[TaggedEntity], remove: Sequence[TaggedEntity]) -> ParsedSchema:
        """The same schema with other tags; this one is changed, too."""
        change_tags(self._document, add, remove)
        return self

    def has_top_level_field(self, name: str) -> bool:
        """Whether the schema names a property."""
        return name in self._properties()

    def check_fields(self) -> None:
        """Names that begin with `$$` are for tools."""
        for name in self._properties():
            if name.startswith("$$"):
                raise InvalidSchema(f"Field names cannot start with $$ prefix: {name}")

    def _properties(self) -> dict[str, Json]:
        found = self._document.get("properties") if isinstance(self._document, dict) else None
        return found if isinstance(found, dict) else {}

    def can_read(self, writer: ParsedSchema, *, is_lenient: bool = False) -> list[Difference]:
        """Every document that is valid for the writer's schema must be valid for this one."""
        theirs = cast(JsonSchema, writer)
        return compare_documents(
            reader=self._document,
            reader_others=self._others,
            writer=theirs._document,
            writer_others=theirs._others,
            is_lenient=is_lenient,
        )


def _compact(document: Json, *, sort_keys: bool = False) -> str:
    """JSON without spaces. Numbers stay as they were written: `1.0` is not `1`, and `0.10` is not `0.1`."""
    match document:
        case dict():
            names = sorted(document) if sort_keys else document
            pairs = (
                f"{quoted(name)}:{_compact(document[name], sort_keys=sort_keys)}" for name in names
            )
            return "{" + ",".join(pairs) + "}"
        case list():
            return "[" + ",".join(_compact(each, sort_keys=sort_keys) for each in document) + "]"
        case Decimal():
            return str(document)
        case str():
            return quoted(document)
        case _:
            return json.dumps(document)


def _load(text: str) -> Json:
    try:
        document = json.loads(text, parse_constant=_no_constant, parse_float=_number)
    except RecursionError:
        raise InvalidSchema("the schema is nested too deeply") from None
    except ValueError as wrong:
        raise InvalidSchema(f"not JSON: {wrong}") from None
    if not isinstance(document, dict | bool):
        raise InvalidSchema("a JSON schema is an object or a boolean")
    _check_depth(document)
    return document


def _number(text: str) -> Decimal:
    number = Decimal(text)
    return number if number else number.copy_abs()  # Java's numbers know no zero below zero


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
