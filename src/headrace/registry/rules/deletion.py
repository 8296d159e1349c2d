"""Deletes versions and subjects, softly at first, then for good. Pure."""

from __future__ import annotations

from headrace.registry import errors
from headrace.registry.rules.lookup import LATEST, Lookup, version_number
from headrace.registry.state.names import SubjectName, parse_subject
from headrace.registry.state.records import (
    ConfigKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Entry,
    ModeKey,
    SchemaKey,
)
from headrace.registry.state.scopes import Scopes
from headrace.registry.state.subjects import Subjects
from headrace.registry.state.writes import Write, version_entry


class Deletion:
    """Decisions over one state."""

    def __init__(self, subjects: Subjects, scopes: Scopes, lookup: Lookup) -> None:
        self._subjects = subjects
        self._scopes = scopes
        self._lookup = lookup

    def delete_version(self, subject: SubjectName, text: str, *, permanent: bool) -> Write[int]:
        """Delete a version, softly at first. Raises RegistryError."""
        name = str(subject)
        number = version_number(text)
        everything = self._subjects.versions(name, deleted=True)
        if number in everything and not permanent and everything[number].is_deleted:
            raise errors.version_soft_deleted(name, number)
        if number == LATEST:
            number = self._subjects.latest(name) or LATEST
        if number not in everything:
            if not everything:
                raise errors.subject_not_found(name)
            raise errors.version_not_found(number)
        self._scopes.check_writable(name)
        if self._subjects.referrers(name, number, deleted=permanent):
            raise errors.reference_exists(name, number)
        version = everything[number]
        if not permanent:
            schema = self._subjects.schema_of(name, version)
            entry = version_entry(name, number, version.schema_id, schema, deleted=True)
            return Write(number, (entry,))
        if not version.is_deleted:
            raise errors.version_not_soft_deleted(name, number)
        entries = [Entry(SchemaKey(subject=name, version=number), None)]
        if len(everything) == 1:
            entries += self._without_settings(name)
        return Write(number, tuple(entries))

    def delete_subject(self, subject: SubjectName, *, permanent: bool) -> Write[list[int]]:
        """Delete all versions of a subject, softly at first. Raises RegistryError."""
        name = str(subject)
        everything = self._subjects.versions(name, deleted=True)
        living = self._subjects.versions(name)
        if not everything:
            raise errors.subject_not_found(name)
        if not permanent and not living:
            raise errors.subject_soft_deleted(name)
        self._scopes.check_writable(name)
        deleted = list(everything if permanent else living)
        for number in deleted:
            self._check_unreferenced(name, number, permanent=permanent)
        if not permanent:
            value = DeleteSubjectValue(subject=name, version=deleted[-1])
            return Write(deleted, (Entry(DeleteSubjectKey(subject=name), value),))
        if living:
            raise errors.subject_not_soft_deleted(name)
        entries = [
            Entry(SchemaKey(subject=name, version=number), None) for number in reversed(deleted)
        ]
        return Write(deleted, (*entries, *self._without_settings(name)))

    def _check_unreferenced(self, subject: str, number: int, *, permanent: bool) -> None:
        """Versions of the same subject may refer to each other: all of them go."""
        for context, schema_id in self._subjects.referrers(subject, number, deleted=permanent):
            uses = self._subjects.uses(context, schema_id, deleted=permanent)
            if any(user != subject for user, _ in uses):
                raise errors.reference_exists(subject, number)

    def _without_settings(self, subject: str) -> list[Entry]:
        entries = []
        if self._subjects.mode(subject) is not None:
            entries.append(Entry(ModeKey(subject=subject), None))
        if self._subjects.config(subject) is not None:
            entries.append(Entry(ConfigKey(subject=subject), None))
        return entries


def context_of(text: str) -> str:
    """The context that a path means: `.ctx` or `:.ctx:`."""
    return parse_subject(text if text.startswith(":") else f":{text}:").context
