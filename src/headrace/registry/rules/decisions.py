"""The registry's rules over one state: every part that answers questions or decides writes. Pure.

Only the primary writes; it calls the deciding parts on a state that has taken in everything written so far. The other
parts are called on every instance.
"""

from __future__ import annotations

from headrace.registry.compatibility import Level
from headrace.registry.rules.deletion import Deletion
from headrace.registry.rules.lookup import Lookup
from headrace.registry.rules.question_builder import QuestionBuilder
from headrace.registry.rules.registration import Registration
from headrace.registry.rules.setting_changes import SettingChanges
from headrace.registry.state.records import (
    ConfigKey,
    ContextKey,
    ContextValue,
    DeleteSubjectKey,
    Entry,
    Key,
    ModeKey,
    ModeValue,
    SchemaKey,
)
from headrace.registry.state.scopes import Scopes
from headrace.registry.state.subjects import Subjects
from headrace.registry.state.writes import version_entry


class Registry:
    """The parts. What must be known of a schema's text is asked of `judge`, by whoever calls."""

    def __init__(
        self,
        subjects: Subjects,
        *,
        default_level: Level = Level.BACKWARD,
        mode_mutability: bool = True,
    ) -> None:
        self.subjects = subjects
        self.scopes = Scopes(subjects, default_level)
        self.lookup = Lookup(subjects)
        self.questions = QuestionBuilder(subjects)
        self.registration = Registration(subjects, self.scopes, self.questions, self.lookup)
        self.deletion = Deletion(subjects, self.scopes, self.lookup)
        self.settings = SettingChanges(subjects, self.scopes, mode_mutability=mode_mutability)

    def current(self, key: Key) -> tuple[Entry, ...]:
        """What holds for a key now, as records that can follow any other record of that key."""
        subjects = self.subjects
        match key:
            case SchemaKey(subject=subject, version=number):
                if subjects.version(subject, number, deleted=True) is not None:
                    return (self._stored_entry(subject, number),)
            case ConfigKey(subject=scope):
                return (Entry(key, subjects.config(scope)),)
            case ModeKey(subject=scope):
                mode = subjects.mode(scope)
                value = None if mode is None else ModeValue(subject=scope, mode=mode)
                return (Entry(key, value),)
            case ContextKey(context=context) if context in subjects.contexts():
                return (Entry(key, ContextValue(context=context)),)
            case DeleteSubjectKey(subject=subject):
                # An earlier record of this key may be all that says that these versions are deleted.
                deleted = (
                    self._stored_entry(subject, number)
                    for number, _ in subjects.deleted_versions(subject)
                )
                return (*deleted, Entry(key, None))
            case _:
                pass
        return (Entry(key, None),)

    def _stored_entry(self, subject: str, number: int) -> Entry:
        _, _, version, schema = self.lookup.found(subject, number)
        return version_entry(subject, number, version.schema_id, schema, deleted=version.is_deleted)
