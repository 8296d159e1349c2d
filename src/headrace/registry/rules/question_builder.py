"""Builds the questions for the judge: what must be parsed or compared before a schema is found, printed or registered. Pure.

Resolves references: a question carries the texts of all schemas that its schema refers to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.registry import errors
from headrace.registry.compatibility import STRICT, Level
from headrace.registry.judging.judge import EarlierText, Question, SchemaText, TagChange
from headrace.registry.rules.submitted import SubmittedReference, SubmittedSchema
from headrace.registry.state.metadata import Metadata
from headrace.registry.state.names import SubjectName, parse_subject, relative
from headrace.registry.state.records import ConfigValue, Reference
from headrace.registry.state.subject_versions import Version
from headrace.registry.state.subjects import Schema, Subjects
from headrace.schemas.formats.schema_format import MAX_SCHEMA_BYTES, InvalidSchema

SCHEMA_TYPES: Final = ("JSON", "PROTOBUF", "AVRO")
_RESERVED: Final = "confluent:reserved"
_MAX_REFERENCE_DEPTH: Final = 50
_MAX_REFERENCED_SCHEMAS: Final = 500
_MAX_COMPARED_BYTES: Final = 32 * MAX_SCHEMA_BYTES


class QuestionBuilder:
    """Questions about schemas in one state of the registry."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects

    def of_submitted(
        self, subject: SubjectName, wanted: SubmittedSchema, *, normalize: bool, is_new: bool
    ) -> Question:
        """What must be known of a request's schema itself. Raises RegistryError."""
        text = self._submitted_text(subject, wanted, is_new=is_new)
        return Question(text, is_new=is_new, normalize=normalize)

    def of_stored(
        self, subject: str, version: Version, *, form: str = "", lists_tags: bool = False
    ) -> Question:
        """What must be known of a version to print it in another form, or with its tags."""
        text = self.stored_text(subject, version)
        return Question(text, is_new=False, form=form, lists_tags=lists_tags)

    def of_schema(self, context: str, schema: Schema, *, form: str) -> Question:
        """What must be known of a schema to print it in another form."""
        return Question(self._schema_text(context, schema), is_new=False, form=form)

    def of_compatibility(
        self,
        subject: SubjectName,
        wanted: SubmittedSchema,
        config: ConfigValue,
        *,
        normalize: bool,
        only_version: int | None = None,
    ) -> Question:
        """What must be known before a schema can follow the versions that the level names, or only one of them.

        Raises RegistryError.
        """
        name = str(subject)
        level = Level[config.compatibility_level or Level.BACKWARD.name]
        earlier = tuple(
            EarlierText(number, self.stored_text(name, version))
            for number, version in self._compared(name, level, wanted, config, only_version).items()
        )
        if sum(len(each.schema.text) for each in earlier) > _MAX_COMPARED_BYTES:
            raise errors.invalid_schema("the subject's versions are too large to be compared")
        is_new = config.validate_new_schemas is not False
        return Question(
            self._submitted_text(subject, wanted, is_new=is_new),
            level.name,
            earlier,
            config.compatibility_policy or STRICT,
            is_new=is_new,
            validates_fields=bool(config.validate_fields),
            normalize=normalize,
            reserved_fields=tuple(
                sorted(reserved_fields(wanted.metadata)) if config.validate_fields else ()
            ),
        )

    def _compared(
        self,
        subject: str,
        level: Level,
        wanted: SubmittedSchema,
        config: ConfigValue,
        only_version: int | None,
    ) -> Mapping[int, Version]:
        """The versions that a schema is compared with."""
        if level is Level.NONE:
            return {}
        group = config.compatibility_group
        if only_version is None and not level.is_transitive and group is None:
            only_version = self._subjects.latest(subject)
            if only_version is None:
                return {}
        if only_version is not None:
            version = self._subjects.version(subject, only_version)
            versions = {} if version is None else {only_version: version}
        else:
            versions = self._subjects.versions(subject)
        if group is not None:
            value = _property(wanted.metadata, group)
            versions = {
                number: version
                for number, version in versions.items()
                if _property(self._subjects.schema_of(subject, version).metadata, group) == value
            }
        return versions if level.is_transitive else dict(list(versions.items())[-1:])

    def tag_change(self, subject: str, wanted: SubmittedSchema) -> TagChange:
        """The change of tags that a request asks for."""
        previous: SchemaText | None = None
        latest = self._subjects.latest(subject) if wanted.propagate_schema_tags else None
        version = None if latest is None else self._subjects.version(subject, latest)
        if version is not None:
            previous = self.stored_text(subject, version)
        return TagChange(
            tuple(each.entity() for each in wanted.schema_tags_to_add or ()),
            tuple(each.entity() for each in wanted.schema_tags_to_remove or ()),
            previous,
        )

    def candidates(self, subject: str, wanted: SubmittedSchema) -> tuple[EarlierText, ...]:
        """Versions that may be the same schema with references, where the request's schema has none."""
        if wanted.references:
            return ()
        return tuple(
            EarlierText(number, self.stored_text(subject, version))
            for number, version in self._subjects.versions_with_references(subject)
        )

    def references_of(
        self, context: str, references: tuple[SubmittedReference, ...] | None
    ) -> tuple[Reference, ...]:
        """References as they are stored: with the number of the version that was the latest one."""
        return tuple(
            Reference(
                each.name or "",
                each.subject or "",
                self._number(relative(each.subject or "", context), each.version or 0),
            )
            for each in references or ()
        )

    def stored_text(self, subject: str, version: Version) -> SchemaText:
        """The text of a version, with the texts of its references."""
        schema = self._subjects.schema_of(subject, version)
        return self._schema_text(parse_subject(subject).context, schema)

    def _schema_text(self, context: str, schema: Schema) -> SchemaText:
        texts = self._resolve(schema.references, context, deleted=True)
        return SchemaText(schema.schema_type, schema.text, texts)

    def _submitted_text(
        self, subject: SubjectName, wanted: SubmittedSchema, *, is_new: bool
    ) -> SchemaText:
        text = wanted.text
        if len(text) > MAX_SCHEMA_BYTES or len(text.encode()) > MAX_SCHEMA_BYTES:
            raise errors.schema_too_large(MAX_SCHEMA_BYTES)
        if wanted.type_name not in SCHEMA_TYPES:
            raise errors.invalid_schema(f"Invalid schema type {wanted.type_name}")
        if not text:
            raise errors.invalid_schema("Empty schema")
        for each in wanted.references or ():
            if each.name is None or each.subject is None or each.version is None:
                raise invalid(wanted, f"a reference needs a name, a subject and a version: {each}")
        references = self.references_of(subject.context, wanted.references)
        try:
            texts = self._resolve(references, subject.context, deleted=not is_new)
        except InvalidSchema as wrong:
            raise invalid(wanted, str(wrong)) from None
        return SchemaText(wanted.type_name, text, texts)

    def _number(self, subject: str, version: int) -> int:
        return version if version != -1 else self._subjects.latest(subject) or -1

    def _resolve(
        self, references: tuple[Reference, ...], context: str, *, deleted: bool
    ) -> tuple[tuple[str, str], ...]:
        """The texts that references mean, by name, those that others need first. Raises InvalidSchema."""
        texts: dict[str, str] = {}
        self._resolve_into(texts, references, context, set(), 0, deleted=deleted)
        return tuple(texts.items())

    def _resolve_into(
        self,
        texts: dict[str, str],
        references: tuple[Reference, ...],
        context: str,
        seen: set[str],
        depth: int,
        *,
        deleted: bool,
    ) -> None:
        if depth > _MAX_REFERENCE_DEPTH or len(seen) > _MAX_REFERENCED_SCHEMAS:
            raise InvalidSchema("the references are nested too deeply, or are too many")
        for reference in references:
            if reference.name in seen:
                continue
            seen.add(reference.name)
            subject = relative(reference.subject, context)
            number = self._number(subject, reference.version)
            version = self._subjects.version(subject, number, deleted=deleted)
            if version is None:
                raise InvalidSchema(
                    f'No schema reference found for subject "{subject}" and version '
                    f"{reference.version}"
                )
            schema = self._subjects.schema_of(subject, version)
            inner = parse_subject(subject).context
            self._resolve_into(texts, schema.references, inner, seen, depth + 1, deleted=deleted)
            texts[reference.name] = schema.text
            if sum(map(len, texts.values())) > _MAX_COMPARED_BYTES:
                raise InvalidSchema("the texts that the schema refers to are too large")


def reserved_fields(metadata: Metadata | None) -> set[str]:
    """The names that metadata keeps for later versions."""
    names = (_property(metadata, _RESERVED) or "").split(",")
    return {name.strip() for name in names if name.strip()}


def _property(metadata: Metadata | None, name: str) -> str | None:
    return None if metadata is None else (metadata.properties or {}).get(name)


def invalid(wanted: SubmittedSchema, details: str) -> errors.RegistryError:
    """A schema that is none of its language."""
    return errors.invalid_schema(f"Invalid schema of type {wanted.type_name}, details: {details}")
