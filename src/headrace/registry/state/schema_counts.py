"""How many versions were registered and deleted since this instance began to read the topic, by schema language. Pure.

Confluent's registry counts records, so a start counts what the topic holds; so does this.
"""

from __future__ import annotations

from collections import Counter

from headrace.registry.state.records import (
    AVRO,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Entry,
    SchemaValue,
)
from headrace.registry.state.subjects import Subjects


class SchemaCounts:
    """Note every record before it is applied to the state."""

    def __init__(self) -> None:
        self.created: Counter[str] = Counter()
        self.deleted: Counter[str] = Counter()

    def note(self, entry: Entry, subjects: Subjects) -> None:
        """Count a record that is about to be applied."""
        match entry.key, entry.value:
            case _, SchemaValue(schema_type=schema_type, deleted=is_deleted):
                (self.deleted if is_deleted else self.created)[schema_type or AVRO] += 1
            case DeleteSubjectKey(subject=subject), DeleteSubjectValue(version=highest):
                for number, version in subjects.versions(subject).items():
                    if number <= highest:
                        self.deleted[subjects.schema_of(subject, version).schema_type] += 1
            case _:
                pass
