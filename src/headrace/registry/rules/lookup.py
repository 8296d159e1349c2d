"""Finds schemas: by subject and version, by id, by GUID, by their text. Pure.

A subject that is not known in the default context is looked for in the others, as Confluent's registry does it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from headrace.registry import errors
from headrace.registry.judging.judge import Judgement
from headrace.registry.rules.question_builder import invalid
from headrace.registry.rules.submitted import SubmittedSchema
from headrace.registry.state.metadata import Metadata, without_confluent_version
from headrace.registry.state.names import (
    ANY_CONTEXT,
    DEFAULT_CONTEXT,
    SubjectName,
    parse_subject,
)
from headrace.registry.state.records import Reference
from headrace.registry.state.subject_versions import Version
from headrace.registry.state.subjects import Schema, Subjects

LATEST: Final = -1
MAX_ID: Final = 2**31 - 1


class FoundVersion(NamedTuple):
    """A version of a subject, with its schema."""

    subject: str
    number: int
    version: Version
    schema: Schema


class FoundSchema(NamedTuple):
    """A schema by its id, with a version that has it."""

    context: str
    schema_id: int
    use: FoundVersion


def version_number(text: str) -> int:
    """The number that a path means; LATEST for `latest`. Raises RegistryError."""
    if text in ("latest", "-1"):
        return LATEST
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_ID:
        raise errors.invalid_version(text)
    return int(text)


class Lookup:
    """Questions to one state."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects

    def found(self, subject: str, number: int) -> FoundVersion:
        """A version that is known to be there."""
        version = self._subjects.version(subject, number, deleted=True)
        assert version is not None, f"{subject} has no version {number}"
        return FoundVersion(subject, number, version, self._subjects.schema_of(subject, version))

    def version(self, subject: str, number: int, *, deleted: bool = False) -> FoundVersion:
        """A version by its number, or the latest one, which is never a deleted one. Raises RegistryError."""
        for name in self._in_contexts(subject):
            wanted = self._subjects.latest(name) if number == LATEST else number
            if wanted is not None and self._subjects.version(name, wanted, deleted=deleted):
                return self.found(name, wanted)
        if self._subjects.has_versions(subject, deleted=deleted):
            raise errors.version_not_found(number)
        raise errors.subject_not_found(subject)

    def by_id(self, schema_id: int, subject: str) -> FoundSchema | None:
        """A schema by its id, in the context of a subject or a context; a subject that has it is preferred."""
        wanted = parse_subject(subject)
        if wanted.name:
            for name in self._in_contexts(subject):
                context = parse_subject(name).context
                numbers = self._subjects.numbers_of(name, schema_id)
                if numbers:
                    return FoundSchema(context, schema_id, self.found(name, numbers[-1]))
            if wanted.context != DEFAULT_CONTEXT:
                return None
        found = self.use(wanted.context, schema_id)
        return None if found is None else FoundSchema(wanted.context, schema_id, found)

    def use(self, context: str, schema_id: int) -> FoundVersion | None:
        """A version that has a schema; one that is not deleted, if there is one."""
        use = self._subjects.first_use(context, schema_id)
        return None if use is None else self.found(*use)

    def by_metadata(
        self, subject: str, properties: Mapping[str, str], *, deleted: bool
    ) -> FoundVersion:
        """The newest version with these properties. Raises RegistryError."""
        versions = self._subjects.versions(subject, deleted=deleted)
        if not versions:
            raise errors.subject_not_found(subject)
        for number in reversed(versions):
            found = self.found(subject, number)
            if (
                found.schema.metadata is not None
                and properties.items() <= (found.schema.metadata.properties or {}).items()
            ):
                return found
        raise errors.schema_not_found()

    def same_schema(
        self, subject: str, schema: Schema, *, deleted: bool, same_as: tuple[int, ...] = ()
    ) -> FoundVersion | None:
        """The newest version that has this schema. Metadata may lack the version that it is of; `same_as` are
        versions that are known to say the same with their references.
        """
        context = parse_subject(subject).context
        known_id = self._subjects.id_of(context, schema)
        if known_id is not None:
            exact = self._newest(subject, self._subjects.numbers_of(subject, known_id), deleted)
            if exact is not None:
                return exact
        numbers = set(same_as)
        for schema_id in self._subjects.similar_ids(context, schema):
            numbers.update(self._subjects.numbers_of(subject, schema_id))
        for number in sorted(numbers, reverse=True):
            found = self._newest(subject, [number], deleted)
            if found is not None and _is_same(schema, found, has_same_text=number in same_as):
                return found
        return None

    def _newest(self, subject: str, numbers: list[int], deleted: bool) -> FoundVersion | None:  # noqa: FBT001
        """The newest of these versions that there is."""
        for number in reversed(numbers):
            if self._subjects.version(subject, number, deleted=deleted) is not None:
                return self.found(subject, number)
        return None

    def matching(self, prefix: str) -> list[str]:
        """The subjects that a prefix names; `:*:` stands for every context."""
        names = list(self._subjects.subjects())
        wanted = parse_subject(prefix)
        return [
            str(each)
            for each in names
            if wanted.context in (ANY_CONTEXT, each.context) and each.name.startswith(wanted.name)
        ]

    def _in_contexts(self, subject: str) -> Iterator[str]:
        yield subject
        wanted = parse_subject(subject)
        if wanted.context == DEFAULT_CONTEXT:
            for context in self._subjects.contexts()[1:]:
                yield str(SubjectName(context, wanted.name))

    def in_contexts(self, subject: str) -> list[SubjectName]:
        """Where a subject is looked for: a qualified one in its context only."""
        return list(map(parse_subject, self._in_contexts(subject)))


def schema_from(
    wanted: SubmittedSchema, references: tuple[Reference, ...], judgement: Judgement
) -> Schema:
    """The schema of a request as it is stored. Raises RegistryError."""
    if judgement.error is not None:
        raise invalid(wanted, judgement.error)
    return Schema(
        wanted.type_name,
        judgement.text,
        references,
        wanted.metadata,
        wanted.rule_set,
    )


def _is_same(schema: Schema, found: FoundVersion, *, has_same_text: bool) -> bool:
    known = found.schema
    is_text = has_same_text or (
        known.schema_type == schema.schema_type
        and known.text == schema.text
        and known.references == schema.references
    )
    return (
        is_text
        and known.rule_set == schema.rule_set
        and _is_same_metadata(schema.metadata, known.metadata, found.number)
    )


def _is_same_metadata(wanted: Metadata | None, known: Metadata | None, number: int) -> bool:
    """Whether metadata differ in nothing but in whether they name the version that they are of."""
    wanted_number = None if wanted is None else wanted.confluent_version
    known_number = None if known is None else known.confluent_version
    if (wanted_number is None) == (known_number is None):
        return wanted == known
    if wanted_number not in (None, number):
        return False
    return without_confluent_version(wanted) == without_confluent_version(known)
