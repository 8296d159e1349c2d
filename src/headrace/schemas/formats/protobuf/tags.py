"""Tags in Protobuf schemas: the list `tags` in the options `confluent.message_meta` and `confluent.field_meta`. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final

from headrace.schemas.formats.protobuf.proto_file import Field, Message, Option, ProtoFile, Value
from headrace.schemas.formats.schema_format import FIELD, RECORD, InvalidSchema, TaggedEntity

_META: Final = {RECORD: "confluent.message_meta", FIELD: "confluent.field_meta"}
_TAGS: Final = "tags"


def tagged_entities(file: ProtoFile) -> Iterator[TaggedEntity]:
    """The messages and fields with tags."""
    for message in file.messages:
        yield from _tagged(message, "")


def _tagged(message: Message, scope: str) -> Iterator[TaggedEntity]:
    path = scope + message.name
    yield from _entity(path, RECORD, message.options)
    in_oneofs = [field for oneof in message.oneofs for field in oneof.fields]
    for field in (*in_oneofs, *message.fields):
        yield from _entity(f"{path}.{field.name}", FIELD, field.options)
    for nested in message.messages:
        yield from _tagged(nested, f"{path}.")


def _entity(path: str, kind: str, options: list[Option]) -> Iterator[TaggedEntity]:
    tags = _listed(_meta(options, _META[kind]).get(_TAGS))
    if tags:
        yield TaggedEntity(path, kind, tuple(map(str, tags)))


def change_tags(
    file: ProtoFile, add: Sequence[TaggedEntity], remove: Sequence[TaggedEntity]
) -> ProtoFile:
    """The file with tags added, then with tags removed. Raises InvalidSchema where a path leads nowhere."""
    changed = deepcopy(file)
    for entity in add:
        options = _options_at(changed, entity)
        tags = _listed(_meta(options, _META[entity.kind]).get(_TAGS))
        _set_tags(options, _META[entity.kind], list(dict.fromkeys([*map(str, tags), *entity.tags])))
    for entity in remove:
        options = _options_at(changed, entity)
        tags = _listed(_meta(options, _META[entity.kind]).get(_TAGS))
        kept = [str(tag) for tag in tags if tag not in entity.tags]
        _set_tags(options, _META[entity.kind], kept)
    return changed


def _options_at(file: ProtoFile, entity: TaggedEntity) -> list[Option]:
    """The options of a message or a field; a field of a oneof may be named with it or without it."""
    names = entity.path.split(".")
    messages, message = file.messages, None
    while names and (found := [each for each in messages if each.name == names[0]]):
        message, messages, names = found[0], found[0].messages, names[1:]
    if message is not None and entity.kind == RECORD and not names:
        return message.options
    if message is not None and entity.kind == FIELD and names:
        for field in _fields(message, names):
            return field.options
    raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")


def _fields(message: Message, names: list[str]) -> Iterator[Field]:
    for oneof in message.oneofs:
        if names in ([each.name] for each in oneof.fields):
            yield from (each for each in oneof.fields if each.name == names[0])
        if names[0] == oneof.name:
            yield from (each for each in oneof.fields if names[1:] == [each.name])
    yield from (each for each in message.fields if names == [each.name])


def _meta(options: list[Option], name: str) -> dict[str, Value]:
    """What all settings of an option say together."""
    found: dict[str, Value] = {}
    for option in options:
        if option.name == name and option.is_extension:
            value = option.value
            for part in reversed(option.path):
                value = {part: value}
            if isinstance(value, dict):
                for key, each in value.items():
                    found[key] = [*_listed(found[key]), *_listed(each)] if key in found else each
    return found


def _set_tags(options: list[Option], name: str, tags: list[str]) -> None:
    meta = _meta(options, name)
    if tags:
        meta[_TAGS] = list(tags)
    else:
        meta.pop(_TAGS, None)
    kept = [each for each in options if each.name != name]
    if meta:
        kept.append(Option(name, meta, is_extension=True))
    options[:] = kept


def _listed(value: Value | None) -> list[Value]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
