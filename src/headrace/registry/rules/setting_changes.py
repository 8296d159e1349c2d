"""Changes compatibility settings, modes and contexts. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from headrace.registry import errors
from headrace.registry.compatibility import POLICIES, Level
from headrace.registry.state.names import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    SubjectName,
    parse_subject,
)
from headrace.registry.state.records import (
    ClearSubjectKey,
    ClearSubjectValue,
    ConfigKey,
    ConfigValue,
    ContextKey,
    Entry,
    ModeKey,
    ModeValue,
    SchemaKey,
)
from headrace.registry.state.scopes import FORWARD_MODE, MODES, Scope, Scopes
from headrace.registry.state.subjects import Subjects
from headrace.registry.state.writes import Write


class SettingChanges:
    """Decisions over one state."""

    def __init__(self, subjects: Subjects, scopes: Scopes, *, mode_mutability: bool) -> None:
        self._subjects = subjects
        self._scopes = scopes
        self._mode_mutability = mode_mutability

    # ---- settings

    def set_config(self, scope: Scope, changes: Mapping[str, Any]) -> Write[ConfigValue]:
        """Set some of a scope's settings; a null clears one. The answer is what the scope has then.

        Raises RegistryError.
        """
        checked = _checked(changes)
        self._scopes.check_writable(scope)
        before = self._subjects.config(scope) or ConfigValue()
        after = msgspec.structs.replace(before, **checked, subject=scope)
        return Write(after, (Entry(ConfigKey(subject=scope), after),))

    def delete_config(self, scope: Scope) -> Write[ConfigValue]:
        """Forget a scope's settings; the answer is what they were. Raises RegistryError."""
        before = self._scopes.own_config(scope)
        if before is None:
            raise errors.subject_not_found(str(scope))
        self._scopes.check_writable(scope)
        return Write(before, (Entry(ConfigKey(subject=scope), None),))

    # ---- modes

    def set_mode(self, scope: Scope, mode: str | None, *, force: bool) -> Write[None]:
        """Set the mode of a scope; None takes it away. Raises RegistryError."""
        if mode is not None and mode not in MODES:
            raise errors.invalid_mode()
        is_global = scope is not None and parse_subject(scope).context == GLOBAL_CONTEXT
        if mode == FORWARD_MODE and not is_global:
            raise errors.forward_mode_not_global()
        self._check_mutable()
        entries: list[Entry] = []
        if mode == "IMPORT" and self._scopes.mode(scope) != "IMPORT" and not force:
            entries += self._cleared(scope)
        value = None if mode is None else ModeValue(subject=scope, mode=mode)
        return Write(None, (*entries, Entry(ModeKey(subject=scope), value)))

    def delete_mode(self, scope: Scope, *, recursive: bool = False) -> Write[str | None]:
        """Forget a scope's mode; the answer is what it was. `recursive` also forgets the modes of what lies in a
        context. Raises RegistryError.
        """
        mode = self._scopes.own_mode(scope)
        if mode is None and not recursive:
            raise errors.subject_not_found(str(scope))
        self._check_mutable()
        inner = self._inner_modes(scope) if recursive else ()
        return Write(mode, (Entry(ModeKey(subject=scope), None), *inner))

    def _check_mutable(self) -> None:
        if not self._mode_mutability:
            raise errors.operation_not_permitted("Mode changes are not allowed")

    def _inner_modes(self, scope: Scope) -> list[Entry]:
        outer = SubjectName(DEFAULT_CONTEXT, "") if scope is None else parse_subject(scope)
        if not outer.is_context:
            return []
        return [
            Entry(ModeKey(subject=each), None)
            for each in self._subjects.mode_scopes()
            if parse_subject(each).context == outer.context and each != scope
        ]

    def _cleared(self, scope: Scope) -> list[Entry]:
        """What makes a scope empty, so that schemas can be imported into it. Raises RegistryError."""
        inside = [
            str(each)
            for each in self._subjects.subjects()
            if scope is None or str(each) == scope or each.qualified_context == scope
        ]
        if any(self._subjects.has_versions(each) for each in inside):
            raise errors.operation_not_permitted("Cannot import since found existing subjects")
        entries = []
        for subject in inside:
            for number in self._subjects.versions(subject, deleted=True):
                if self._subjects.referrers(subject, number, deleted=True):
                    raise errors.reference_exists(subject, number)
                entries.append(Entry(SchemaKey(subject=subject, version=number), None))
        if scope is not None:
            entries.append(Entry(ClearSubjectKey(subject=scope), ClearSubjectValue(subject=scope)))
        return entries

    # ---- contexts

    def delete_context(self, context: str) -> Write[None]:
        """Forget a context in which nothing is registered. Raises RegistryError."""
        if any(each.context == context for each in self._subjects.subjects()):
            raise errors.context_not_empty(SubjectName(context, "").qualified_context)
        return Write(None, (Entry(ContextKey(context=context), None),))


def _checked(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes as they are stored. Raises RegistryError."""
    checked = dict(changes)
    level = checked.get("compatibility_level")
    if level is not None:
        checked["compatibility_level"] = level.upper()
        if level.upper() not in Level.__members__:
            raise errors.invalid_level()
    policy = checked.get("compatibility_policy")
    if policy is not None:
        # Another policy than those that are known counts as none, as with Confluent's registry.
        checked["compatibility_policy"] = policy.upper() if policy.upper() in POLICIES else None
    for name in ("default_rule_set", "override_rule_set"):
        if checked.get(name) is not None:
            checked[name].check()
    return checked
