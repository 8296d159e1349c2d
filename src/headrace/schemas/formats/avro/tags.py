"""Tags in Avro schemas: the attribute `confluent:tags` of records and of their fields. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.schemas.formats.schema_format import FIELD, RECORD, InvalidSchema, TaggedEntity

if TYPE_CHECKING:
    from headrace.schemas.formats.avro.types import Type

_TAGS: Final = "confluent:tags"


def tagged_entities(root: Type) -> Iterator[TaggedEntity]:
    """The records and fields with tags, in the order of the schema."""
    for path, kind, props in _entities(root):
        tags = props.get(_TAGS)
        if isinstance(tags, list) and tags:
            yield TaggedEntity(path, kind, tuple(map(str, tags)))


def change_tags(root: Type, add: Sequence[TaggedEntity], remove: Sequence[TaggedEntity]) -> None:
    """Write tags into the schema, then take tags out of it. Raises InvalidSchema where a path leads nowhere."""
    places = {(path, kind): props for path, kind, props in _entities(root)}
    for entity in (*add, *remove):
        if (entity.path, entity.kind) not in places:
            raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")
    for entity in add:
        props = places[entity.path, entity.kind]
        props[_TAGS] = list(dict.fromkeys([*props.get(_TAGS, ()), *entity.tags]))
    for entity in remove:
        props = places[entity.path, entity.kind]
        kept = [tag for tag in props.get(_TAGS, ()) if tag not in entity.tags]
        if kept:
            props[_TAGS] = kept
        else:
            props.pop(_TAGS, None)


def _entities(root: Type) -> Iterator[tuple[str, str, dict[str, Any]]]:
    seen: set[str] = set()
    stack = [root]
    while stack:
        each = stack.pop()
        inner = [each.items] if each.items is not None else list(each.branches)
        if each.kind in ("record", "error"):
            if each.full_name in seen:
                continue
            seen.add(each.full_name)
            yield each.full_name, RECORD, each.props
            for field in each.fields:
                yield f"{each.full_name}.{field.name}", FIELD, field.props
                inner.append(field.type)
        stack += reversed(inner)
