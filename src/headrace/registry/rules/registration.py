"""Registers schemas: which version and which id a schema gets, and when it is refused. Pure.

A registration has two halves, because a schema is judged in another process: `question` says what must be judged, and
`register` decides on the judgement, if the question is still the same. `existing` answers without a write.
"""

from __future__ import annotations

import msgspec

from headrace.registry import errors
from headrace.registry.judging.judge import Judgement, Question
from headrace.registry.rules.lookup import LATEST, FoundVersion, Lookup, schema_from
from headrace.registry.rules.question_builder import QuestionBuilder, reserved_fields
from headrace.registry.rules.submitted import (
    NEXT_VERSION,
    NO_ID,
    SubmittedReference,
    SubmittedSchema,
    TagsChange,
)
from headrace.registry.state.metadata import (
    RuleSet,
    merge_metadata,
    merge_rule_sets,
    with_confluent_version,
    without_rules,
)
from headrace.registry.state.names import DEFAULT_CONTEXT, SubjectName
from headrace.registry.state.records import (
    ConfigValue,
    ContextKey,
    ContextValue,
    Entry,
    SchemaKey,
)
from headrace.registry.state.scopes import Scopes, refused
from headrace.registry.state.subject_versions import Version
from headrace.registry.state.subjects import Schema, Subjects
from headrace.registry.state.writes import Write, version_entry


class Registration:
    """Decisions over one state."""

    def __init__(
        self, subjects: Subjects, scopes: Scopes, questions: QuestionBuilder, lookup: Lookup
    ) -> None:
        self._subjects = subjects
        self._scopes = scopes
        self._questions = questions
        self._lookup = lookup

    def normalizes(self, subject: SubjectName, *, asked: bool) -> bool:
        """Whether texts are normalised before they are compared and stored."""
        return asked or bool(self._scopes.config(str(subject)).normalize)

    # ---- schemas that are registered already

    def may_exist(self, subject: SubjectName, wanted: SubmittedSchema) -> bool:
        """Whether the schema may be registered already as it was sent."""
        config = self._scopes.config(str(subject))
        has_extensions = (
            config.default_metadata,
            config.override_metadata,
            config.default_rule_set,
            config.override_rule_set,
        )
        return (
            bool(wanted.text)
            and not wanted.changes_tags
            and not any(has_extensions)
            and self._subjects.latest(str(subject)) is not None
        )

    def lookup_question(
        self, subject: SubjectName, wanted: SubmittedSchema, *, normalize: bool
    ) -> Question:
        """What must be judged before a schema can be found. Raises RegistryError."""
        question = self._questions.of_submitted(
            subject, wanted, normalize=self.normalizes(subject, asked=normalize), is_new=False
        )
        candidates = self._questions.candidates(str(subject), wanted)
        return msgspec.structs.replace(question, candidates=candidates)

    def existing(
        self, subject: SubjectName, wanted: SubmittedSchema, judgement: Judgement
    ) -> FoundVersion | None:
        """The version that a registration asks for and that is there already. Raises RegistryError."""
        name = str(subject)
        schema = self._schema(subject, wanted, judgement)
        found = self._lookup.same_schema(name, schema, deleted=False, same_as=judgement.same_as)
        if found is None:
            return None
        version = wanted.wanted_version
        is_same_id = wanted.wanted_id == found.version.schema_id
        if version == LATEST and found.number != self._subjects.latest(name):
            return None
        if version in (NEXT_VERSION, LATEST):
            return found if wanted.wanted_id == NO_ID or is_same_id else None
        if not is_same_id or self._subjects.version(name, version) is None:
            return None
        other = self._lookup.found(name, version)  # imports may give one schema several versions
        return other if other.version.schema_id == found.version.schema_id else None

    def find(
        self, subject: SubjectName, wanted: SubmittedSchema, judgement: Judgement, *, deleted: bool
    ) -> FoundVersion | None:
        """The version under which a schema is registered. Raises RegistryError."""
        name = str(subject)
        schema = self._schema(subject, wanted, judgement)
        found = self._lookup.same_schema(name, schema, deleted=deleted, same_as=judgement.same_as)
        latest = self._subjects.latest(name)
        if found is not None or latest is None:
            return found
        # As a registration would find it: with the metadata and the rules that it would get.
        completed = self._completed(wanted, self._lookup.found(name, latest).schema, name)
        if (completed.metadata, completed.rule_set) == (wanted.metadata, wanted.rule_set):
            return None
        schema = self._schema(subject, completed, judgement)
        return self._lookup.same_schema(name, schema, deleted=deleted, same_as=judgement.same_as)

    # ---- new versions

    def question(
        self, subject: SubjectName, wanted: SubmittedSchema, *, normalize: bool, force: bool
    ) -> Question:
        """What must be judged before a schema can be registered. Raises RegistryError."""
        name = str(subject)
        self._check_mode(subject, wanted)
        complete = self._from_previous(subject, wanted)
        config = self._scopes.config(name)
        is_imported = self._scopes.takes_ids(name)
        if is_imported or force:
            config = msgspec.structs.replace(config, compatibility_level="NONE")
        if wanted.wanted_id != NO_ID:
            config = msgspec.structs.replace(config, validate_new_schemas=False)
        normalizes = not is_imported and self.normalizes(subject, asked=normalize)
        question = self._questions.of_compatibility(subject, complete, config, normalize=normalizes)
        return msgspec.structs.replace(
            question,
            tags=self._questions.tag_change(name, wanted),
            candidates=self._questions.candidates(name, complete),
        )

    def register(
        self, subject: SubjectName, wanted: SubmittedSchema, judgement: Judgement, *, force: bool
    ) -> Write[FoundVersion]:
        """Register a schema that was judged by `question`. Raises RegistryError."""
        name = str(subject)
        self._check_mode(subject, wanted)
        is_imported = self._scopes.takes_ids(name)
        complete = self._from_previous(subject, wanted)
        schema = self._schema(subject, complete, judgement)
        version = self._version_of(wanted)
        if version == NEXT_VERSION:
            found = self._lookup.same_schema(name, schema, deleted=False, same_as=judgement.same_as)
            if found is not None and wanted.wanted_id in (NO_ID, found.version.schema_id):
                return Write(found)
        if not is_imported and not force:
            self._check_compatible(subject, complete, judgement)
        next_version = self._subjects.highest_version(name) + 1
        if version <= NEXT_VERSION:
            version = next_version
        elif version != next_version and not is_imported:
            raise errors.invalid_schema("Version is not one more than previous version")
        return self._write(subject, version, schema, wanted.wanted_id)

    def tagged(self, found: FoundVersion, change: TagsChange) -> SubmittedSchema:
        """The registration that a change of tags is: the same text with other tags. Raises RegistryError."""
        schema = found.schema
        rule_set = change.rule_set
        if change.rules_to_merge is not None or change.rules_to_remove is not None:
            if rule_set is not None:
                raise errors.invalid_rule_set(
                    "ruleSet should be omitted if specifying rulesToMerge or rulesToRemove"
                )
            rule_set = self._merged_rules(found.subject, change)
        for each in (change.rules_to_merge, change.rule_set):
            if each is not None:
                each.check()
        metadata = change.metadata if change.metadata is not None else schema.metadata
        version = LATEST if change.new_version is None else change.new_version
        return SubmittedSchema(
            schema=schema.text,
            schema_type=schema.schema_type,
            references=_submitted(schema),
            metadata=with_confluent_version(metadata, max(version, 0)),
            rule_set=rule_set,
            version=version,
            schema_tags_to_add=change.tags_to_add,
            schema_tags_to_remove=change.tags_to_remove,
        )

    def _merged_rules(self, subject: str, change: TagsChange) -> RuleSet | None:
        before = self._subjects.latest(subject)
        if change.new_version is not None:
            before = change.new_version - 1
        version = None if before is None else self._subjects.version(subject, before)
        rule_set = None
        if version is not None:
            rule_set = self._subjects.schema_of(subject, version).rule_set
        rule_set = merge_rule_sets(rule_set, change.rules_to_merge)
        return without_rules(rule_set, change.rules_to_remove or [])

    # ---- parts

    def _check_mode(self, subject: SubjectName, wanted: SubmittedSchema) -> None:
        name = str(subject)
        self._scopes.check_writable(name)
        if wanted.wanted_id != NO_ID:
            if not self._scopes.takes_ids(name):
                raise refused(name, "is not in import mode")
        elif self._scopes.mode(name) != "READWRITE":
            raise refused(name, "is not in read-write mode")

    def _schema(
        self, subject: SubjectName, wanted: SubmittedSchema, judgement: Judgement
    ) -> Schema:
        references = self._questions.references_of(subject.context, wanted.references)
        if judgement.is_normalized:
            references = tuple(sorted(set(references)))
        return schema_from(wanted, references, judgement)

    def _version_of(self, wanted: SubmittedSchema) -> int:
        """Tags in the text make a new version, which the metadata name."""
        has_tags = bool(wanted.schema_tags_to_add or wanted.schema_tags_to_remove)
        return LATEST if has_tags and wanted.version is None else wanted.wanted_version

    def _from_previous(self, subject: SubjectName, wanted: SubmittedSchema) -> SubmittedSchema:
        """The schema with what it takes over from the latest version and from the settings. Raises RegistryError."""
        name = str(subject)
        if self._scopes.takes_ids(name):
            return wanted
        latest = self._subjects.latest(name)
        previous = None if latest is None else self._lookup.found(name, latest).schema
        if not wanted.text:
            if previous is None:
                raise errors.invalid_schema("Empty schema")
            wanted = msgspec.structs.replace(
                wanted,
                schema=previous.text,
                schema_type=previous.schema_type,
                references=_submitted(previous),
            )
        complete = self._completed(wanted, previous, name)
        metadata = complete.metadata
        names_version = metadata is not None and metadata.confluent_version is not None
        if self._version_of(wanted) != NEXT_VERSION or names_version:
            number = self._subjects.highest_version(name) + 1
            metadata = with_confluent_version(metadata, number)
        return msgspec.structs.replace(complete, metadata=metadata)

    def _completed(
        self, wanted: SubmittedSchema, previous: Schema | None, subject: str
    ) -> SubmittedSchema:
        config: ConfigValue = self._scopes.config(subject)
        metadata, rule_set = wanted.metadata, wanted.rule_set
        if previous is not None:
            metadata = previous.metadata if metadata is None else metadata
            rule_set = previous.rule_set if rule_set is None else rule_set
        metadata = merge_metadata(config.default_metadata, metadata)
        rule_set = merge_rule_sets(config.default_rule_set, rule_set)
        return msgspec.structs.replace(
            wanted,
            metadata=merge_metadata(metadata, config.override_metadata),
            rule_set=merge_rule_sets(rule_set, config.override_rule_set),
        )

    def _check_compatible(
        self, subject: SubjectName, complete: SubmittedSchema, judgement: Judgement
    ) -> None:
        found = self.messages(subject, complete, judgement)
        if found:
            raise errors.incompatible(str(subject), found)

    def messages(
        self, subject: SubjectName, complete: SubmittedSchema, judgement: Judgement
    ) -> list[str]:
        """Why a schema cannot be the next version of a subject; empty if it can."""
        name = str(subject)
        config = self._scopes.config(name)
        found: list[str] = []
        latest = self._subjects.latest(name)
        if config.validate_fields:
            before = set[str]()
            if latest is not None:
                before = reserved_fields(self._lookup.found(name, latest).schema.metadata)
            found += [
                f"The new schema has reserved field {field} removed from its metadata which is present in the old "
                "schema's metadata."
                for field in sorted(before - reserved_fields(complete.metadata))
            ]
            found += [
                f"The new schema has field that conflicts with the reserved field {field}."
                for field in judgement.conflicting_fields
            ]
        found += judgement.incompatibilities
        if found:
            validates = "true" if config.validate_fields else "false"
            level = self._scopes.level(name).name
            found.append(f"{{validateFields: '{validates}', compatibility: '{level}'}}")
        return found

    def _write(
        self, subject: SubjectName, version: int, schema: Schema, wanted_id: int
    ) -> Write[FoundVersion]:
        name, context = str(subject), subject.context
        schema_id = wanted_id
        if wanted_id == NO_ID:
            known = self._subjects.id_of(context, schema)
            schema_id = self._subjects.next_id(context) if known is None else known
        other = self._subjects.schema(context, schema_id)
        if other is not None and other != schema:
            raise errors.operation_not_permitted(
                f"Overwrite new schema with id {schema_id} in context "
                f"{subject.qualified_context} is not permitted."
            )
        entries = []
        if context != DEFAULT_CONTEXT and context not in self._subjects.contexts():
            entries.append(Entry(ContextKey(context=context), ContextValue(context=context)))
        entries += self._superseded(name, version, schema_id)
        entry = version_entry(name, version, schema_id, schema)
        answer = FoundVersion(name, version, Version(schema_id), schema)
        return Write(answer, (*entries, entry))

    def _superseded(self, subject: str, version: int, schema_id: int) -> list[Entry]:
        """Deleted versions with the same schema are forgotten when it is registered again."""
        return [
            Entry(SchemaKey(subject=subject, version=number), None)
            for number in self._subjects.numbers_of(subject, schema_id)
            if number < version
            and self._subjects.version(subject, number) is None  # only there as a deleted one
            and not self._subjects.referrers(subject, number, deleted=True)
        ]


def _submitted(schema: Schema) -> tuple[SubmittedReference, ...]:
    return tuple(
        SubmittedReference(each.name, each.subject, each.version) for each in schema.references
    )
