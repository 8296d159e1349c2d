"""Judges one schema: is it valid, what is its canonical text, is it compatible with earlier versions? Pure.

A question carries every text that the answer depends on, so that it can be answered in another process, and so that two
questions are equal exactly when their answers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from headrace.registry.compatibility import STRICT, Earlier, Level, messages
from headrace.schemas.formats.avro.language import AvroFormat
from headrace.schemas.formats.json_schema.language import JsonSchemaFormat
from headrace.schemas.formats.protobuf.language import ProtobufFormat
from headrace.schemas.formats.schema_format import (
    InvalidSchema,
    ParsedSchema,
    SchemaFormat,
    TaggedEntity,
)

FORMATS: Final[Mapping[str, SchemaFormat]] = {
    AvroFormat.NAME: AvroFormat(),
    JsonSchemaFormat.NAME: JsonSchemaFormat(),
    ProtobufFormat.NAME: ProtobufFormat(),
}


class SchemaText(msgspec.Struct, frozen=True):
    """A schema with the texts of its references by name, those that others need first."""

    schema_type: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


class EarlierText(msgspec.Struct, frozen=True):
    """A version that is registered already."""

    version: int
    schema: SchemaText


class TagChange(msgspec.Struct, frozen=True):
    """Tags that are written into a schema's text, and tags that are taken out of it."""

    add: tuple[TaggedEntity, ...] = ()
    remove: tuple[TaggedEntity, ...] = ()
    add_those_of: SchemaText | None = None  # an earlier version, whose tags the new one inherits


class Question(msgspec.Struct, frozen=True):
    """A schema, and the earlier versions that it must be compatible with at a level."""

    schema: SchemaText
    level: str = Level.NONE.name
    earlier: tuple[EarlierText, ...] = ()
    policy: str = STRICT
    is_new: bool = True  # one that is not new was accepted before, and is checked less strictly
    validates_fields: bool = False
    normalize: bool = False
    tags: TagChange = TagChange()
    form: str = ""  # another form of the text that is wanted
    lists_tags: bool = False
    reserved_fields: tuple[str, ...] = ()  # names that no field of the schema may have
    # Versions with references, which may be this schema without them.
    candidates: tuple[EarlierText, ...] = ()


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What was found; `error` says why the schema is none."""

    error: str | None = None
    text: str = ""  # canonical, or normalised where the question asked for it
    is_normalized: bool = False
    formatted: str = ""
    incompatibilities: tuple[str, ...] = ()
    tags: tuple[TaggedEntity, ...] = ()
    conflicting_fields: tuple[str, ...] = ()  # reserved ones
    same_as: tuple[int, ...] = ()  # of the candidates


def judge(question: Question) -> Judgement:
    """Parse the schema and compare it."""
    new = question.schema
    try:
        parsed = _with_tags(_parse(new, is_new=question.is_new), question.tags)
        if question.validates_fields:
            parsed.check_fields()
        earlier = [
            Earlier(
                each.version,
                each.schema.schema_type,
                each.schema.text,
                lambda each=each: _parse(each.schema, is_new=False),  # type: ignore[misc]
            )
            for each in question.earlier
        ]
        found = messages(
            Level[question.level], parsed, new.schema_type, earlier, policy=question.policy
        )
        return Judgement(
            text=parsed.normalized() if question.normalize else parsed.canonical(),
            is_normalized=question.normalize,
            formatted=parsed.formatted(question.form) if question.form else "",
            incompatibilities=tuple(found),
            tags=tuple(parsed.tags()) if question.lists_tags else (),
            conflicting_fields=tuple(
                name for name in question.reserved_fields if parsed.has_top_level_field(name)
            ),
            same_as=_same(parsed, question),
        )
    except InvalidSchema as wrong:
        return Judgement(error=str(wrong))


def _with_tags(parsed: ParsedSchema, change: TagChange) -> ParsedSchema:
    add = change.add
    if change.add_those_of is not None:
        add += tuple(_parse(change.add_those_of, is_new=False).tags())
    return parsed.tagged(add, change.remove) if add or change.remove else parsed


def _same(parsed: ParsedSchema, question: Question) -> tuple[int, ...]:
    """The candidates that say the same if their references are written out."""
    if not question.candidates:
        return ()
    resolved = parsed.formatted("resolved")
    return tuple(
        each.version
        for each in question.candidates
        if each.schema.schema_type == question.schema.schema_type
        and _parse(each.schema, is_new=False).formatted("resolved") == resolved
    )


def _parse(schema: SchemaText, *, is_new: bool) -> ParsedSchema:
    return FORMATS[schema.schema_type].parse(schema.text, dict(schema.references), is_new=is_new)
