"""Judges one schema: is it valid, what is its canonical text, is it compatible with earlier versions? Pure.

A question carries every text that the answer depends on, so that it can be answered in another process, and so that two
questions are equal exactly when their answers are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from headrace.registry.compatibility import Earlier, Level, messages
from headrace.registry.formats.avro import AvroFormat
from headrace.registry.formats.json_schema import JsonSchemaFormat
from headrace.registry.formats.protobuf import ProtobufFormat, ProtobufSchema
from headrace.registry.formats.schema_format import InvalidSchema, ParsedSchema, SchemaFormat

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


class Question(msgspec.Struct, frozen=True):
    """A schema, and the earlier versions that it must be compatible with at a level."""

    schema: SchemaText
    level: str = Level.NONE.name
    earlier: tuple[EarlierText, ...] = ()
    is_new: bool = True


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What was found; `error` says why the schema is none."""

    error: str | None = None
    canonical: str = ""
    normalized: str = ""
    serialized: str = ""  # of a Protobuf schema: its descriptor in base64
    incompatibilities: tuple[str, ...] = ()


def judge(question: Question) -> Judgement:
    """Parse the schema and compare it."""
    new = question.schema
    try:
        parsed = _parse(new, is_new=question.is_new)
        earlier = [
            Earlier(
                each.version,
                each.schema.schema_type,
                each.schema.text,
                lambda each=each: _parse(each.schema, is_new=False),  # type: ignore[misc]
            )
            for each in question.earlier
        ]
        found = messages(Level[question.level], parsed, new.schema_type, earlier)
    except InvalidSchema as wrong:
        return Judgement(error=str(wrong))
    return Judgement(
        canonical=parsed.canonical(),
        normalized=parsed.normalized(),
        serialized=parsed.serialized() if isinstance(parsed, ProtobufSchema) else "",
        incompatibilities=tuple(found),
    )


def _parse(schema: SchemaText, *, is_new: bool) -> ParsedSchema:
    return FORMATS[schema.schema_type].parse(schema.text, dict(schema.references), is_new=is_new)
