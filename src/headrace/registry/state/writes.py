"""What a decision of the registry consists of: records, and the answer once they are readable. Pure."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

from headrace.registry.state.records import Entry, SchemaKey, SchemaValue
from headrace.registry.state.subjects import Schema

T_co = TypeVar("T_co", covariant=True)


class Write(NamedTuple, Generic[T_co]):
    """The records of a write, and what is answered once they are readable."""

    answer: T_co
    entries: tuple[Entry, ...] = ()


def version_entry(
    subject: str, version: int, schema_id: int, schema: Schema, *, deleted: bool = False
) -> Entry:
    """The record of a version."""
    return Entry(
        SchemaKey(subject=subject, version=version),
        SchemaValue(
            subject=subject,
            version=version,
            id=schema_id,
            schema_type=schema.schema_type,
            references=schema.references,
            metadata=schema.metadata,
            rule_set=schema.rule_set,
            schema=schema.text,
            deleted=deleted,
        ),
    )
