"""Metadata and rule sets of schemas: their form, their order, how they are merged and what is refused. Pure.

The registry keeps both and gives them to clients; it executes no rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal, TypeVar

import msgspec

from headrace.registry import errors

T = TypeVar("T")

CONFLUENT_VERSION: Final = "confluent:version"
_MAX_NAME: Final = 256
_NAME: Final = re.compile(r"[^\W\d][\w-]*")
_MIGRATION_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DATA_MODES: Final = ("WRITE", "READ", "WRITEREAD")
_MODES_OF_TWO_ACTIONS: Final = ("WRITEREAD", "UPDOWN", None)


def _normalize(struct: msgspec.Struct, name: str, value: object) -> None:
    """Set an attribute of a frozen struct while it is made."""
    msgspec.structs.force_setattr(struct, name, value)


class Metadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tags by entity path, properties by name, and the names of properties that are secret; all of them in order."""

    tags: dict[str, list[str]] | None = None
    properties: dict[str, str] | None = None
    sensitive: list[str] | None = None

    def __post_init__(self) -> None:
        tags = {path: sorted(set(found)) for path, found in sorted((self.tags or {}).items())}
        _normalize(self, "tags", tags or None)
        _normalize(self, "properties", dict(sorted((self.properties or {}).items())) or None)
        _normalize(self, "sensitive", sorted(set(self.sensitive or ())) or None)

    def hashed(self) -> Iterator[str]:
        """The texts that the schema's digest is made of."""
        for path, found in (self.tags or {}).items():
            yield from (path, *found)
        for each in (self.properties or {}).items():
            yield from each
        yield from self.sensitive or ()

    @property
    def confluent_version(self) -> int | None:
        """The version that the metadata says the schema is of."""
        text = (self.properties or {}).get(CONFLUENT_VERSION, "")
        return int(text) if re.fullmatch(r"-?\d{1,10}", text) else None


def with_confluent_version(metadata: Metadata | None, version: int) -> Metadata:
    """The same metadata for another version of the subject."""
    before = metadata or Metadata()
    properties = {**(before.properties or {}), CONFLUENT_VERSION: str(version)}
    return msgspec.structs.replace(before, properties=properties)


def without_confluent_version(metadata: Metadata | None) -> Metadata:
    """The same metadata for no version in particular."""
    before = metadata or Metadata()
    properties = dict(before.properties or {})
    properties.pop(CONFLUENT_VERSION, None)
    return msgspec.structs.replace(before, properties=properties)


def merge_metadata(weaker: Metadata | None, stronger: Metadata | None) -> Metadata | None:
    """What both say; where they differ, what the stronger one says."""
    if weaker is None or stronger is None:
        return stronger if weaker is None else weaker
    return Metadata(
        tags={**(weaker.tags or {}), **(stronger.tags or {})},
        properties={**(weaker.properties or {}), **(stronger.properties or {})},
        sensitive=[*(weaker.sensitive or ()), *(stronger.sensitive or ())],
    )


class Rule(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A rule that clients apply to records."""

    name: str | None = None
    doc: str | None = None
    kind: Literal["TRANSFORM", "CONDITION"] | None = None
    mode: Literal["UPGRADE", "DOWNGRADE", "UPDOWN", "WRITE", "READ", "WRITEREAD"] | None = None
    type: str | None = None
    tags: list[str] | None = None
    params: dict[str, str] | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None

    def __post_init__(self) -> None:
        _normalize(self, "tags", sorted(set(self.tags or ())) or None)
        _normalize(self, "params", dict(sorted((self.params or {}).items())) or None)
        _normalize(self, "disabled", bool(self.disabled))

    def hashed(self) -> Iterator[str]:
        """The texts that the schema's digest is made of."""
        for text in (self.name, self.doc, self.kind, self.mode, self.type):
            yield text or ""
        yield from self.tags or ()
        for each in (self.params or {}).items():
            yield from each
        for text in (self.expr, self.on_success, self.on_failure):
            yield text or ""
        if self.disabled:
            yield "\x01"

    def check(self) -> None:
        """Raises RegistryError."""
        if self.name is None:
            raise errors.invalid_rule_set("Missing rule name")
        if not self.name:
            raise errors.invalid_rule_set("Empty rule name")
        if len(self.name) > _MAX_NAME:
            raise errors.invalid_rule_set("Rule name too long")
        if not _NAME.fullmatch(self.name):
            raise errors.invalid_rule_set(f"Illegal character in rule name: {self.name}")
        if self.type is None:
            raise errors.invalid_rule_set("Missing rule type")
        for action in (self.on_success, self.on_failure):
            if "," in (action or "") and self.mode not in _MODES_OF_TWO_ACTIONS:
                raise errors.invalid_rule_set(
                    "Multiple actions only valid with WRITEREAD and UPDOWN"
                )


class RuleSet(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Rules for migrations between versions, for values, and for encoded records."""

    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None
    enable_at: Literal["ALL", "CLIENT", "GATEWAY", "SERVER", "NONE"] | None = None

    def __post_init__(self) -> None:
        for name in ("migration_rules", "domain_rules", "encoding_rules"):
            _normalize(self, name, getattr(self, name) or None)

    def hashed(self) -> Iterator[str]:
        """The texts that the schema's digest is made of."""
        for rule in self.rules():
            yield from rule.hashed()
        yield self.enable_at or ""

    def rules(self) -> Iterator[Rule]:
        """All rules."""
        for found in (self.migration_rules, self.domain_rules, self.encoding_rules):
            yield from found or ()

    def check(self) -> None:
        """Raises RegistryError where a rule cannot be meant."""
        names: set[str | None] = set()
        for title, rules, modes in (
            ("Migration", self.migration_rules, _MIGRATION_MODES),
            ("Domain", self.domain_rules, _DATA_MODES),
            ("Encoding", self.encoding_rules, _DATA_MODES),
        ):
            for rule in rules or ():
                if rule.name in names:
                    raise errors.invalid_rule_set(f"Found rule with duplicate name '{rule.name}'")
                names.add(rule.name)
                rule.check()
                if rule.mode not in modes:
                    raise errors.invalid_rule_set(f"{title} rules can only be {', '.join(modes)}")


def merge_rule_sets(weaker: RuleSet | None, stronger: RuleSet | None) -> RuleSet | None:
    """The rules of both; of two with the same name, the stronger set's."""
    if weaker is None or stronger is None:
        return stronger if weaker is None else weaker
    return RuleSet(
        migration_rules=_merge_rules(weaker.migration_rules, stronger.migration_rules),
        domain_rules=_merge_rules(weaker.domain_rules, stronger.domain_rules),
        encoding_rules=_merge_rules(weaker.encoding_rules, stronger.encoding_rules),
        enable_at=stronger.enable_at or weaker.enable_at,
    )


def _merge_rules(weaker: list[Rule] | None, stronger: list[Rule] | None) -> list[Rule]:
    names = {rule.name for rule in stronger or ()}
    return [rule for rule in weaker or () if rule.name not in names] + (stronger or [])


def without_rules(rule_set: RuleSet | None, names: list[str]) -> RuleSet | None:
    """The rule set without the rules of these names."""
    if rule_set is None or not names:
        return rule_set

    def kept(rules: list[Rule] | None) -> list[Rule]:
        return [rule for rule in rules or () if rule.name not in names]

    return RuleSet(
        migration_rules=kept(rule_set.migration_rules),
        domain_rules=kept(rule_set.domain_rules),
        encoding_rules=kept(rule_set.encoding_rules),
        enable_at=rule_set.enable_at,
    )
