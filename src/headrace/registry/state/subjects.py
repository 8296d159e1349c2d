"""The registry's state: contexts, schema ids, subjects and their versions, configs and modes. Pure.

Built by `apply` from the records of `_schemas` alone, in their order, so that every instance that has read as far knows
the same. Schemas are kept as text; a schema that stands in many subjects is kept once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.registry.state.metadata import Metadata, RuleSet, without_confluent_version
from headrace.registry.state.names import DEFAULT_CONTEXT, SubjectName, parse_subject, relative
from headrace.registry.state.records import (
    AVRO,
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    ContextKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Entry,
    ModeKey,
    ModeValue,
    Reference,
    SchemaKey,
    SchemaValue,
    digest_of,
)
from headrace.registry.state.subject_versions import NO_VERSIONS, SubjectVersions, Version


class Schema(msgspec.Struct, frozen=True, gc=False):
    """A schema, whatever its subject."""

    schema_type: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None

    @property
    def digest(self) -> bytes:
        """The 16 bytes that identify it."""
        return digest_of(self.text, self.references, self.metadata, self.rule_set)

    @property
    def digest_without_version(self) -> bytes:
        """The digest of the same schema whose metadata name no version of a subject."""
        metadata = without_confluent_version(self.metadata)
        return digest_of(
            self.text,
            self.references,
            None if metadata == Metadata() else metadata,
            self.rule_set,
        )


class _Context(msgspec.Struct):
    schemas: dict[int, Schema] = {}
    ids: dict[bytes, int] = {}  # by digest
    # By the digest without a version: the ids that `ids` does not have under that digest, because their metadata
    # name a version, or because another schema with the same digest came first.
    similar_ids: dict[bytes, list[int]] = {}
    uses: dict[int, set[tuple[str, int]]] = {}  # the (subject, version)s of an id
    highest_id: int = 0


class Subjects:
    """Everything that has been registered."""

    def __init__(self) -> None:
        self._contexts: dict[str, _Context] = {DEFAULT_CONTEXT: _Context()}
        self._versions: dict[str, SubjectVersions] = {}
        self._configs: dict[str | None, ConfigValue] = {}
        self._modes: dict[str | None, str] = {}
        # The ids, with their contexts, of schemas that refer to a version.
        self._referrers: dict[tuple[str, int], set[tuple[str, int]]] = {}
        self.change_number = 0  # of the records that were taken in; answers hold while it stays

    # ---- questions

    def contexts(self) -> list[str]:
        """The contexts in which anything was registered, the default one first."""
        return [DEFAULT_CONTEXT, *sorted(self._contexts.keys() - {DEFAULT_CONTEXT})]

    def subjects(self) -> Iterator[SubjectName]:
        """Every subject that has a version, deleted or not."""
        return map(parse_subject, sorted(self._versions))

    @property
    def version_count(self) -> int:
        """How many versions there are in all."""
        return sum(len(each.by_number) for each in self._versions.values())

    def versions(self, subject: str, *, deleted: bool = False) -> dict[int, Version]:
        """A copy of the versions of a subject in their order; with `deleted`, also the soft-deleted ones."""
        return self._of(subject).items(deleted=deleted)

    def version(self, subject: str, number: int, *, deleted: bool = False) -> Version | None:
        """A version by its number; with `deleted`, also a soft-deleted one."""
        return self._of(subject).get(number, deleted=deleted)

    def has_versions(self, subject: str, *, deleted: bool = False) -> bool:
        """Whether a subject has a version; with `deleted`, a soft-deleted one counts."""
        return self._of(subject).has_any(deleted=deleted)

    def deleted_versions(self, subject: str) -> Iterator[tuple[int, Version]]:
        """The soft-deleted versions of a subject."""
        return self._of(subject).deleted

    def versions_with_references(self, subject: str) -> Iterator[tuple[int, Version]]:
        """The versions of a subject whose schemas have references; also the soft-deleted ones."""
        return self._of(subject).referring

    def latest(self, subject: str) -> int | None:
        """The newest version that is not deleted."""
        return self._of(subject).latest

    def highest_version(self, subject: str) -> int:
        """The highest number ever given that is still known; 0 if none."""
        return self._of(subject).highest

    def _of(self, subject: str) -> SubjectVersions:
        return self._versions.get(subject, NO_VERSIONS)

    def schema(self, context: str, schema_id: int) -> Schema | None:
        """The schema with an id."""
        known = self._contexts.get(context)
        return None if known is None else known.schemas.get(schema_id)

    def schema_of(self, subject: str, version: Version) -> Schema:
        """The schema of a version."""
        return self._contexts[parse_subject(subject).context].schemas[version.schema_id]

    def id_of(self, context: str, schema: Schema) -> int | None:
        """The id that this schema has in a context."""
        known = self._contexts.get(context)
        schema_id = None if known is None else known.ids.get(schema.digest)
        # Two schemas may have one digest: it does not tell empty metadata from an empty rule set.
        if known is None or schema_id is None or known.schemas[schema_id] != schema:
            return None
        return schema_id

    def similar_ids(self, context: str, schema: Schema) -> list[int]:
        """The ids of schemas that may differ from this one in nothing but the version that their metadata name."""
        known = self._contexts.get(context)
        if known is None:
            return []
        digest = schema.digest_without_version
        found = (known.ids.get(schema.digest), known.ids.get(digest))
        others = known.similar_ids.get(digest, ())
        return list(dict.fromkeys(each for each in (*found, *others) if each is not None))

    def numbers_of(self, subject: str, schema_id: int) -> list[int]:
        """The numbers of the versions of a subject that have a schema, in their order; also the soft-deleted ones."""
        context = self._contexts.get(parse_subject(subject).context)
        uses = () if context is None else context.uses.get(schema_id, ())
        versions = self._of(subject).by_number
        if len(uses) < len(versions):
            return sorted(number for name, number in uses if name == subject)
        return [number for number, each in versions.items() if each.schema_id == schema_id]

    def ids_by_digest(self, digest: bytes) -> list[tuple[str, int]]:
        """The (context, id)s of a digest."""
        return [
            (name, self._contexts[name].ids[digest])
            for name in self.contexts()
            if digest in self._contexts[name].ids
        ]

    def next_id(self, context: str) -> int:
        """The id that the next new schema gets."""
        known = self._contexts.get(context)
        return 1 if known is None else known.highest_id + 1

    def highest_id(self, context: str) -> int:
        """The highest id that was given in a context."""
        return self.next_id(context) - 1

    def uses(self, context: str, schema_id: int, *, deleted: bool = True) -> list[tuple[str, int]]:
        """The (subject, version)s that have a schema."""
        known = self._contexts.get(context)
        found = [] if known is None else sorted(known.uses.get(schema_id, ()))
        return [each for each in found if deleted or not self._is_deleted(*each)]

    def first_use(self, context: str, schema_id: int) -> tuple[str, int] | None:
        """The first (subject, version) that has a schema; one that is not deleted, if there is one."""
        known = self._contexts.get(context)
        uses = () if known is None else known.uses.get(schema_id, ())
        return min(uses, key=lambda each: (self._is_deleted(*each), each), default=None)

    def referrers(
        self, subject: str, version: int, *, deleted: bool = False
    ) -> list[tuple[str, int]]:
        """The (context, id)s of schemas that refer to a version; with `deleted`, also of those that are only
        registered in deleted versions.
        """
        found = sorted(self._referrers.get((subject, version), ()))
        return [each for each in found if deleted or self.uses(*each, deleted=False)]

    def config(self, subject: str | None) -> ConfigValue | None:
        """What is configured for exactly this subject, context or, with None, for all."""
        return self._configs.get(subject)

    def aliases(self) -> Iterator[tuple[str, str]]:
        """The subjects that stand for another one, with its name."""
        for subject, config in sorted(
            (str(key), each) for key, each in self._configs.items() if key
        ):
            if config.alias:
                yield subject, relative(config.alias, parse_subject(subject).context)

    def mode(self, subject: str | None) -> str | None:
        """The mode of exactly this subject, context or, with None, of all."""
        return self._modes.get(subject)

    def mode_scopes(self) -> list[str]:
        """The subjects and contexts that have a mode of their own."""
        return sorted(scope for scope in self._modes if scope is not None)

    # ---- changes

    def apply(self, entry: Entry) -> None:
        """Take in the next record of `_schemas`."""
        self.change_number += 1
        match entry.key:
            case SchemaKey(subject=subject, version=version):
                if isinstance(entry.value, SchemaValue):
                    self._put(subject, version, entry.value, entry.timestamp)
                else:
                    self._remove(subject, version)
            case DeleteSubjectKey() | ClearSubjectKey():
                self._delete_subject(entry)
            case ConfigKey(subject=scope):
                _set(self._configs, scope, entry.value)
            case ModeKey(subject=scope):
                mode = entry.value.mode if isinstance(entry.value, ModeValue) else None
                _set(self._modes, scope, mode)
            case ContextKey(context=context):
                if entry.value is None:
                    self._drop_context(context)
                else:
                    self._contexts.setdefault(context, _Context())
            case _:
                pass

    def _delete_subject(self, entry: Entry) -> None:
        match entry.key, entry.value:
            case DeleteSubjectKey(subject=subject), DeleteSubjectValue(version=highest):
                if subject in self._versions:
                    self._versions[subject].delete_up_to(highest)
            case ClearSubjectKey(subject=subject), value if value is not None:
                for number, _ in list(self.deleted_versions(subject)):
                    self._remove(subject, number)
            case _:
                pass

    def _put(self, subject: str, number: int, value: SchemaValue, timestamp: int | None) -> None:
        self._remove(subject, number)
        context_name = parse_subject(subject).context
        context = self._contexts.setdefault(context_name, _Context())
        if value.id not in context.schemas:
            schema = Schema(
                value.schema_type or AVRO,
                value.schema,
                value.references or (),
                value.metadata,
                value.rule_set,
            )
            context.schemas[value.id] = schema
            _index(context, value.id, schema)
        references = context.schemas[value.id].references
        context.highest_id = max(context.highest_id, value.id)
        context.uses.setdefault(value.id, set()).add((subject, number))
        version = Version(value.id, value.deleted, timestamp, bool(references))
        self._versions.setdefault(subject, SubjectVersions()).put(number, version)
        for reference in references:
            referred = (relative(reference.subject, context_name), reference.version)
            self._referrers.setdefault(referred, set()).add((context_name, value.id))

    def _is_deleted(self, subject: str, number: int) -> bool:
        return self._versions[subject].by_number[number].is_deleted

    def _remove(self, subject: str, number: int) -> None:
        version = self._versions[subject].remove(number) if subject in self._versions else None
        if version is None:
            return
        if not self._versions[subject].by_number:
            del self._versions[subject]
        context_name = parse_subject(subject).context
        context = self._contexts[context_name]
        uses = context.uses[version.schema_id]
        uses.discard((subject, number))
        if not uses:
            self._forget_schema(context_name, version.schema_id)

    def _forget_schema(self, context_name: str, schema_id: int) -> None:
        context = self._contexts[context_name]
        schema = context.schemas.pop(schema_id)
        del context.uses[schema_id]
        _unindex(context, schema_id, schema)
        for reference in schema.references:
            referred = (relative(reference.subject, context_name), reference.version)
            self._referrers.get(referred, set()).discard((context_name, schema_id))

    def _drop_context(self, context: str) -> None:
        if context != DEFAULT_CONTEXT and not self._contexts.get(context, _Context()).schemas:
            self._contexts.pop(context, None)


def _index(context: _Context, schema_id: int, schema: Schema) -> None:
    """Make an id known by its schema's digests."""
    digest = schema.digest
    is_first = context.ids.setdefault(digest, schema_id) == schema_id
    without_version = digest if schema.metadata is None else schema.digest_without_version
    if not is_first or without_version != digest:
        context.similar_ids.setdefault(without_version, []).append(schema_id)


def _unindex(context: _Context, schema_id: int, schema: Schema) -> None:
    """Undo `_index`. Where another schema has the same digest, that digest stands for its id from now on."""
    digest, without_version = schema.digest, schema.digest_without_version
    similar = context.similar_ids.get(without_version, [])
    if schema_id in similar:
        similar.remove(schema_id)
    if context.ids.get(digest) == schema_id:
        del context.ids[digest]
        for other in similar:
            if context.schemas[other].digest == digest:
                context.ids[digest] = other
                break
    if not similar:
        context.similar_ids.pop(without_version, None)


def _set(table: dict[str | None, Any], scope: str | None, value: object) -> None:
    """Keep a value for a scope; None: forget it."""
    if value is None:
        table.pop(scope, None)
    else:
        table[scope] = value
