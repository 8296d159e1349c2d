"""Tags in JSON schemas: the keyword `confluent:tags` of objects and of their properties. Pure.

A path names the kinds of schemas that it leads through: `object.name` is a property, `object.name.object` the object that
it holds, `array`, `not`, `allof.0`, `conditional.if` and `definitions.name` lead further inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from headrace.schemas.formats.schema_format import FIELD, RECORD, InvalidSchema, TaggedEntity

Json = Any

_TAGS: Final = "confluent:tags"


def tagged_entities(document: Json) -> Iterator[TaggedEntity]:
    """The objects and properties with tags."""
    for path, kind, schema in _entities(document, ""):
        tags = schema.get(_TAGS)
        if isinstance(tags, list) and tags:
            yield TaggedEntity(path, kind, tuple(map(str, tags)))


def change_tags(
    document: Json, add: Sequence[TaggedEntity], remove: Sequence[TaggedEntity]
) -> None:
    """Write tags into the document, then take tags out of it. Raises InvalidSchema where a path leads nowhere."""
    places = {(path, kind): schema for path, kind, schema in _entities(document, "")}
    for entity in (*add, *remove):
        if (entity.path, entity.kind) not in places:
            raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")
    for entity in add:
        schema = places[entity.path, entity.kind]
        schema[_TAGS] = list(dict.fromkeys([*schema.get(_TAGS, ()), *entity.tags]))
    for entity in remove:
        schema = places[entity.path, entity.kind]
        kept = [tag for tag in schema.get(_TAGS, ()) if tag not in entity.tags]
        if kept:
            schema[_TAGS] = kept
        else:
            schema.pop(_TAGS, None)


def _entities(schema: Json, scope: str) -> Iterator[tuple[str, str, dict[str, Json]]]:
    if not isinstance(schema, dict):
        return
    for criterion in ("allOf", "anyOf", "oneOf"):
        for index, part in enumerate(_listed(schema.get(criterion))):
            yield from _entities(part, f"{scope}{criterion.lower()}.{index}.")
    yield from _entities(schema.get("items"), f"{scope}array.")
    if schema.get("type") == "object" or "properties" in schema:
        yield f"{scope}object", RECORD, schema
        yield from _entities_in_object(schema, f"{scope}object")
    for keyword in ("if", "then", "else"):
        yield from _entities(schema.get(keyword), f"{scope}conditional.{keyword}.")
    yield from _entities(schema.get("not"), f"{scope}not.")


def _entities_in_object(
    schema: dict[str, Json], name: str
) -> Iterator[tuple[str, str, dict[str, Json]]]:
    for each, inner in _mapped(schema.get("properties")):
        if isinstance(inner, dict):
            yield f"{name}.{each}", FIELD, inner
            yield from _entities(inner, f"{name}.{each}.")
    for keyword in ("definitions", "$defs"):
        for each, inner in _mapped(schema.get(keyword)):
            yield from _entities(inner, f"{name}.{keyword}.{each}.")


def _mapped(value: Json) -> list[tuple[str, Json]]:
    return list(value.items()) if isinstance(value, dict) else []


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []
