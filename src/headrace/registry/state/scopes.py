"""Which compatibility settings and which mode are in force for a subject: its own, its context's, or those for all. Pure."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headrace.registry import errors
from headrace.registry.compatibility import Level
from headrace.registry.state.names import (
    DEFAULT_CONTEXT,
    GLOBAL_CONTEXT,
    SubjectName,
    parse_subject,
)
from headrace.registry.state.records import ConfigValue
from headrace.registry.state.subjects import Subjects

MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
DEFAULT_MODE: Final = "READWRITE"
FORWARD_MODE: Final = "FORWARD"
GLOBAL_SCOPE: Final = str(SubjectName(GLOBAL_CONTEXT, ""))
# What a subject's own settings leave open is taken from those for all; other settings belong to one scope.
_INHERITED: Final = (
    "normalize",
    "validate_fields",
    "validate_new_schemas",
    "validate_rules",
    "compatibility_policy",
    "compatibility_group",
)

Scope = (
    str | None
)  # a subject or a context; None: the default context, whose settings are those for all


def scope_of(subject: SubjectName) -> Scope:
    """The scope that a subject or a context is."""
    return None if subject == SubjectName(DEFAULT_CONTEXT, "") else str(subject)


class Scopes:
    """Settings and modes over one state."""

    def __init__(self, subjects: Subjects, default_level: Level) -> None:
        self._subjects = subjects
        self._default_level = default_level.name

    def own_config(self, scope: Scope) -> ConfigValue | None:
        """What is configured for exactly this scope; for all, and for the global context, there is always something."""
        config = self._subjects.config(scope)
        if config is not None:
            return self._with_level(config)
        if scope is None or parse_subject(scope).context == GLOBAL_CONTEXT:
            return ConfigValue(compatibility_level=self._default_level)
        return None

    def config(self, scope: Scope) -> ConfigValue:
        """The settings in force."""
        own = None if scope is None else self._subjects.config(scope)
        if own is None:
            return self._outer_config(scope)
        outer = self._subjects.config(None) or ConfigValue()
        inherited = {
            name: getattr(outer, name) for name in _INHERITED if getattr(own, name) is None
        }
        return self._with_level(msgspec.structs.replace(own, **inherited))

    def level(self, scope: Scope) -> Level:
        """The compatibility level in force."""
        return Level[self.config(scope).compatibility_level or self._default_level]

    def own_mode(self, scope: Scope) -> str | None:
        """The mode of exactly this scope; for all, and for the global context, there is always one."""
        mode = self._subjects.mode(scope)
        if mode is None and (scope is None or parse_subject(scope).context == GLOBAL_CONTEXT):
            return DEFAULT_MODE
        return mode

    def mode(self, scope: Scope) -> str:
        """The mode in force."""
        found = (self._subjects.mode(each) for each in self._from_inside(scope))
        return next((mode for mode in found if mode is not None), DEFAULT_MODE)

    def takes_ids(self, scope: Scope) -> bool:
        """Whether schemas come with their ids, from another registry, and are not compared."""
        return self.mode(scope) in ("IMPORT", FORWARD_MODE)

    def check_writable(self, scope: Scope) -> None:
        """Raises RegistryError where the mode allows no changes."""
        if self.mode(scope).startswith("READONLY"):
            raise refused(scope, "is in read-only mode")

    def _outer_config(self, scope: Scope) -> ConfigValue:
        for each in self._from_inside(scope):
            config = self._subjects.config(each)
            if config is not None:
                return self._with_level(config)
        return ConfigValue(compatibility_level=self._default_level)

    def _from_inside(self, scope: Scope) -> list[Scope]:
        """Where settings of a scope may stand, the strongest first."""
        if scope is None:
            return [None, GLOBAL_SCOPE]
        return [scope, scope_of(SubjectName(parse_subject(scope).context, "")), GLOBAL_SCOPE]

    def _with_level(self, config: ConfigValue) -> ConfigValue:
        level = config.compatibility_level or self._default_level
        return msgspec.structs.replace(config, compatibility_level=level)


def refused(scope: Scope, why: str) -> errors.RegistryError:
    """A refusal because of a mode."""
    context = "" if scope is None else parse_subject(scope).qualified_context
    return errors.operation_not_permitted(f"Subject {scope} in context {context} {why}")


def settings_of(config: ConfigValue) -> dict[str, Any]:
    """The settings that a scope has, by name."""
    found = msgspec.structs.asdict(config)
    del found["subject"]
    return {name: value for name, value in found.items() if value is not None}
