"""Bodies of the requests that change something: schemas, settings, modes, tags. Pure.

A client may send null for whatever it does not mean; that counts as absent. In changes of settings, null clears one.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from headrace.registry.state.metadata import Metadata, RuleSet
from headrace.registry.state.records import AVRO
from headrace.schemas.formats.schema_format import TaggedEntity

_Optional = msgspec.UnsetType
NO_ID: Final = -1
NEXT_VERSION: Final = (
    0  # whatever number comes next; -1 also says so, and asks for it in the metadata
)


class SubmittedReference(msgspec.Struct, frozen=True):
    """A reference; one that is not complete is refused with the schema."""

    name: str | None = None
    subject: str | None = None
    version: int | None = None


class _Entity(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    entity_path: str
    entity_type: str = "sr_field"


class Tags(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Tags of a record or a field."""

    schema_entity: _Entity
    tags: list[str] = []

    def entity(self) -> TaggedEntity:
        """The same for a schema language."""
        return TaggedEntity(
            self.schema_entity.entity_path, self.schema_entity.entity_type, tuple(self.tags)
        )


class SubmittedSchema(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A schema as a request gives it."""

    schema: str | None = None
    schema_type: str | None = None
    references: tuple[SubmittedReference, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    id: int | None = None
    version: int | None = None
    schema_tags_to_add: tuple[Tags, ...] | None = None
    schema_tags_to_remove: tuple[Tags, ...] | None = None
    propagate_schema_tags: bool | None = None

    @property
    def text(self) -> str:
        """The schema's text; empty if there is none."""
        return self.schema if self.schema is not None and self.schema.strip() else ""

    @property
    def type_name(self) -> str:
        """The language of the text."""
        return self.schema_type or AVRO

    @property
    def wanted_id(self) -> int:
        """The id that the schema is to have; NO_ID if any."""
        return NO_ID if self.id is None or self.id < 0 else self.id

    @property
    def wanted_version(self) -> int:
        """The version that the schema is to have."""
        return NEXT_VERSION if self.version is None else self.version

    @property
    def changes_tags(self) -> bool:
        """Whether the text that is registered is not the one that was sent."""
        return bool(
            self.schema_tags_to_add or self.schema_tags_to_remove or self.propagate_schema_tags
        )


class ConfigChange(msgspec.Struct, kw_only=True, rename="camel"):
    """A PUT of settings; what it does not name stays as it is."""

    compatibility: str | _Optional | None = msgspec.UNSET
    alias: str | _Optional | None = msgspec.UNSET
    alias_for_deks: str | _Optional | None = msgspec.UNSET
    normalize: bool | _Optional | None = msgspec.UNSET
    validate_fields: bool | _Optional | None = msgspec.UNSET
    validate_new_schemas: bool | _Optional | None = msgspec.UNSET
    validate_rules: bool | _Optional | None = msgspec.UNSET
    compatibility_policy: str | _Optional | None = msgspec.UNSET
    compatibility_group: str | _Optional | None = msgspec.UNSET
    default_metadata: Metadata | _Optional | None = msgspec.UNSET
    override_metadata: Metadata | _Optional | None = msgspec.UNSET
    default_rule_set: RuleSet | _Optional | None = msgspec.UNSET
    override_rule_set: RuleSet | _Optional | None = msgspec.UNSET

    def named(self) -> dict[str, Any]:
        """The settings that the request names, by the names that they are stored under."""
        found = {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if value is not msgspec.UNSET
        }
        if "compatibility" in found:
            found["compatibility_level"] = found.pop("compatibility")
        return found


class ModeChange(msgspec.Struct):
    """A PUT of a mode; null takes a scope's mode away."""

    mode: str | None


class TagsChange(msgspec.Struct, kw_only=True, rename="camel"):
    """A POST of tags; `new_version` is the number that the version with them is to get."""

    new_version: int | None = None
    tags_to_add: tuple[Tags, ...] | None = None
    tags_to_remove: tuple[Tags, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    rules_to_merge: RuleSet | None = None
    rules_to_remove: list[str] | None = None
