"""What the registry answers, and which records a write consists of. Pure: state in, answer and records out.

Only the primary writes; it calls these functions on a state that has taken in everything written so far. Reading
functions are called on every instance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from headrace.registry import errors
from headrace.registry.compatibility import Level
from headrace.registry.formats.schema_format import MAX_SCHEMA_BYTES, InvalidSchema
from headrace.registry.judge import EarlierText, Judgement, Question, SchemaText
from headrace.registry.names import SubjectName, parse_subject, relative
from headrace.registry.records import (
    AVRO,
    ConfigKey,
    ConfigValue,
    ContextKey,
    ContextValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Entry,
    Key,
    ModeKey,
    ModeValue,
    Reference,
    SchemaKey,
    SchemaValue,
)
from headrace.registry.subjects import Schema, Subjects, Version

T_co = TypeVar("T_co", covariant=True)

MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
DEFAULT_MODE: Final = "READWRITE"
_MAX_VERSION: Final = 2**31 - 1
_MAX_REFERENCE_DEPTH: Final = 50
_MAX_REFERENCED_SCHEMAS: Final = 500
_MAX_COMPARED_BYTES: Final = 32 * MAX_SCHEMA_BYTES
SCHEMA_TYPES: Final = ("JSON", "PROTOBUF", "AVRO")


class Write(NamedTuple, Generic[T_co]):
    """The records of a write, and what is answered once they are readable."""

    answer: T_co
    entries: tuple[Entry, ...] = ()


class Wanted(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=False
):
    """A schema as a request gives it."""

    schema: str = ""
    schema_type: str = AVRO
    references: tuple[Reference, ...] = ()
    metadata: dict[str, Any] | None = None
    rule_set: dict[str, Any] | None = None
    id: int = -1
    version: int = 0


class Registry:
    """The rules, over one state. What must be known of a schema's text is asked of `judge`, by whoever calls."""

    def __init__(
        self,
        subjects: Subjects,
        *,
        default_level: Level = Level.BACKWARD,
        mode_mutability: bool = True,
    ) -> None:
        self.subjects = subjects
        self._default_level = default_level
        self._mode_mutability = mode_mutability

    # ---- questions about schemas

    def question(self, subject: SubjectName, wanted: Wanted) -> Question:
        """What must be judged of a schema before it can be found or printed. Raises RegistryError."""
        return Question(self._text_of(wanted, subject.context))

    def compatibility_question(
        self, subject: SubjectName, wanted: Wanted, *, against: list[int] | None = None
    ) -> Question:
        """What must be judged before a schema can be the next version; `against` these versions instead of
        those that the level names. Raises RegistryError.
        """
        name = str(subject)
        level = self.level(name)
        versions = self.subjects.versions(name)
        if against is not None:
            versions = {number: versions[number] for number in against}
        elif not level.is_transitive:
            versions = dict(list(versions.items())[-1:])
        earlier = (
            ()
            if level is Level.NONE
            else tuple(
                EarlierText(number, self._stored_text(name, version))
                for number, version in versions.items()
            )
        )
        if sum(len(each.schema.text) for each in earlier) > _MAX_COMPARED_BYTES:
            raise errors.invalid_schema("the subject's versions are too large to be compared")
        return Question(self._text_of(wanted, subject.context), level.name, earlier)

    def _text_of(self, wanted: Wanted, context: str) -> SchemaText:
        if len(wanted.schema) > MAX_SCHEMA_BYTES or len(wanted.schema.encode()) > MAX_SCHEMA_BYTES:
            raise errors.schema_too_large(MAX_SCHEMA_BYTES)
        if wanted.schema_type not in SCHEMA_TYPES:
            raise errors.invalid_schema(f"Invalid schema type {wanted.schema_type}")
        if not wanted.schema.strip():
            raise errors.invalid_schema("Empty schema")
        try:
            references = self._resolve(wanted.references, context)
        except InvalidSchema as wrong:
            raise _invalid(wanted, str(wrong)) from None
        return SchemaText(wanted.schema_type, wanted.schema, references)

    def _stored_text(self, subject: str, version: Version) -> SchemaText:
        schema = self.subjects.schema_of(subject, version)
        references = self._resolve(schema.references, parse_subject(subject).context)
        return SchemaText(schema.schema_type, schema.text, references)

    def _resolve(
        self, references: tuple[Reference, ...], context: str
    ) -> tuple[tuple[str, str], ...]:
        """The texts that references mean, by name, those that others need first. Raises InvalidSchema."""
        texts: dict[str, str] = {}
        self._resolve_into(texts, references, context, {}, 0)
        return tuple(texts.items())

    def _resolve_into(
        self,
        texts: dict[str, str],
        references: tuple[Reference, ...],
        context: str,
        seen: dict[str, tuple[str, int]],
        depth: int,
    ) -> None:
        if depth > _MAX_REFERENCE_DEPTH or len(seen) > _MAX_REFERENCED_SCHEMAS:
            raise InvalidSchema("the references are nested too deeply, or are too many")
        for reference in references:
            subject = relative(reference.subject, context)
            number = reference.version
            if number == -1:
                number = max(self.subjects.versions(subject), default=-1)
            place = (subject, number)
            if seen.get(reference.name, place) != place:
                raise InvalidSchema(f"two references are named '{reference.name}'")
            if reference.name in seen:
                continue
            seen[reference.name] = place
            version = self.subjects.versions(subject, deleted=True).get(number)
            if version is None:
                raise InvalidSchema(
                    f"No schema reference found for subject '{reference.subject}' and version {reference.version}"
                )
            schema = self.subjects.schema_of(subject, version)
            inner = parse_subject(subject).context
            self._resolve_into(texts, schema.references, inner, seen, depth + 1)
            texts[reference.name] = schema.text
            if sum(map(len, texts.values())) > _MAX_COMPARED_BYTES:
                raise InvalidSchema("the texts that the schema refers to are too large")

    def schema_of(
        self, subject: SubjectName, wanted: Wanted, judgement: Judgement, *, normalize: bool
    ) -> Schema:
        """The schema of a request as it is stored. Raises RegistryError."""
        if judgement.error is not None:
            raise _invalid(wanted, judgement.error)
        references = wanted.references
        if normalize or self.effective_config(str(subject)).normalize:
            text = judgement.normalized
            references = tuple(sorted(references, key=lambda each: each.name))
        else:
            text = judgement.canonical
        return Schema(wanted.schema_type, text, references, wanted.metadata, wanted.rule_set)

    # ---- reading

    def version(self, subject: str, text: str, *, deleted: bool = False) -> tuple[int, Version]:
        """The version that a path means: a number, `latest` or -1. Raises RegistryError."""
        number = _version_number(text)
        versions = self.subjects.versions(subject, deleted=deleted)
        if not versions:
            if number != -1 and self.subjects.versions(subject, deleted=True):
                raise errors.version_not_found(number)
            raise errors.subject_not_found(subject)
        if number == -1:
            number = max(versions)
        if number not in versions:
            raise errors.version_not_found(number)
        return number, versions[number]

    def lookup(
        self,
        subject: SubjectName,
        wanted: Wanted,
        judgement: Judgement,
        *,
        normalize: bool,
        deleted: bool,
    ) -> tuple[int, Version]:
        """The version under which a schema is registered. Raises RegistryError."""
        name = str(subject)
        versions = self.subjects.versions(name, deleted=deleted)
        if not versions:
            raise errors.subject_not_found(name)
        schema = self.schema_of(subject, wanted, judgement, normalize=normalize)
        found = self._find(name, schema, versions)
        if found is None:
            raise errors.schema_not_found()
        return found

    def _find(
        self, subject: str, schema: Schema, versions: Mapping[int, Version]
    ) -> tuple[int, Version] | None:
        """The newest of these versions that has this schema; metadata and rules count only where they are given."""
        for number, version in reversed(list(versions.items())):
            known = self.subjects.schema_of(subject, version)
            if (
                known.schema_type == schema.schema_type
                and known.text == schema.text
                and known.references == schema.references
                and schema.metadata in (None, known.metadata)
                and schema.rule_set in (None, known.rule_set)
            ):
                return number, version
        return None

    def effective_config(self, subject: str | None) -> ConfigValue:
        """The settings in force: a subject's own before its context's, and those before the ones for all."""
        merged: dict[str, Any] = {"compatibility_level": self._default_level.name}
        for scope in _scopes(subject):
            config = self.subjects.config(scope)
            if config is not None:
                merged |= {
                    name: value
                    for name, value in msgspec.structs.asdict(config).items()
                    if value is not None
                }
        return ConfigValue(**merged)

    def level(self, subject: str) -> Level:
        """The compatibility level in force."""
        return Level[self.effective_config(subject).compatibility_level or self._default_level.name]

    def effective_mode(self, subject: str | None) -> str:
        """The mode in force; READONLY_OVERRIDE of all is stronger than any other."""
        if self.subjects.mode(None) == "READONLY_OVERRIDE":
            return "READONLY_OVERRIDE"
        modes = [self.subjects.mode(scope) for scope in _scopes(subject)]
        return next((mode for mode in reversed(modes) if mode is not None), DEFAULT_MODE)

    # ---- writing schemas

    def register(
        self,
        subject: SubjectName,
        wanted: Wanted,
        judgement: Judgement,
        *,
        normalize: bool = False,
    ) -> Write[tuple[int, int]]:
        """Register a schema that was judged by its `compatibility_question`; the answer is its id and version.

        Raises RegistryError.
        """
        name = str(subject)
        mode = self.effective_mode(name)
        if mode.startswith("READONLY") or mode == "FORWARD":
            raise _read_only(subject)
        schema = self.schema_of(subject, wanted, judgement, normalize=normalize)
        if mode == "IMPORT":
            return self._import(subject, wanted, schema)
        found = self._find(name, schema, self.subjects.versions(name))
        if found is not None:
            number, version = found
            if wanted.id in (-1, version.schema_id) and wanted.version in (0, -1, number):
                return Write((version.schema_id, number))
        if wanted.id >= 0 or wanted.version > 0:
            raise errors.operation_not_permitted(
                f"Subject {subject.name} in context {subject.context} is not in import mode"
            )
        if judgement.incompatibilities:
            raise errors.incompatible(name, list(judgement.incompatibilities))
        version_number = self.subjects.highest_version(name) + 1
        return self._write_version(subject, version_number, schema)

    def _import(
        self, subject: SubjectName, wanted: Wanted, schema: Schema
    ) -> Write[tuple[int, int]]:
        name = str(subject)
        version = wanted.version if wanted.version > 0 else self.subjects.highest_version(name) + 1
        if wanted.id >= 0:
            other = self.subjects.schema(subject.context, wanted.id)
            if other is not None and other.digest != schema.digest:
                raise errors.operation_not_permitted(
                    f"Overwrite new schema with id {wanted.id} is not permitted."
                )
        schema_id = wanted.id if wanted.id >= 0 else None
        return self._write_version(subject, version, schema, schema_id)

    def _write_version(
        self, subject: SubjectName, version: int, schema: Schema, schema_id: int | None = None
    ) -> Write[tuple[int, int]]:
        if schema_id is None:
            schema_id = self.subjects.id_of(subject.context, schema)
        if schema_id is None:
            schema_id = self.subjects.next_id(subject.context)
        entries = []
        if subject.context not in self.subjects.contexts():
            key = ContextKey(context=subject.context)
            entries.append(Entry(key, ContextValue(context=subject.context)))
        entries.append(self._version_entry(str(subject), version, schema_id, schema))
        return Write((schema_id, version), tuple(entries))

    def current(self, key: Key) -> tuple[Entry, ...]:
        """What holds for a key now, as records that can follow any other record of that key."""
        subjects = self.subjects
        match key:
            case SchemaKey(subject=subject, version=number):
                version = subjects.versions(subject, deleted=True).get(number)
                if version is not None:
                    return (self._stored_entry(subject, number, version),)
            case ConfigKey(subject=scope):
                return (Entry(key, subjects.config(scope)),)
            case ModeKey(subject=scope):
                mode = subjects.mode(scope)
                return (Entry(key, None if mode is None else ModeValue(mode)),)
            case ContextKey(context=context) if context in subjects.contexts():
                return (Entry(key, ContextValue(context=context)),)
            case DeleteSubjectKey(subject=subject):
                # An earlier record of this key may be all that says that these versions are deleted.
                deleted = (
                    self._stored_entry(subject, number, version)
                    for number, version in subjects.versions(subject, deleted=True).items()
                    if version.is_deleted
                )
                return (*deleted, Entry(key, None))
            case _:
                pass
        return (Entry(key, None),)

    def _stored_entry(self, subject: str, number: int, version: Version) -> Entry:
        schema = self.subjects.schema_of(subject, version)
        return self._version_entry(
            subject, number, version.schema_id, schema, deleted=version.is_deleted
        )

    def _version_entry(
        self, subject: str, version: int, schema_id: int, schema: Schema, *, deleted: bool = False
    ) -> Entry:
        return Entry(
            SchemaKey(subject=subject, version=version),
            SchemaValue(
                subject=subject,
                version=version,
                id=schema_id,
                schema_type=schema.schema_type,
                references=schema.references,
                metadata=schema.metadata,
                rule_set=schema.rule_set,
                schema=schema.text,
                deleted=deleted,
            ),
        )

    def delete_version(self, subject: SubjectName, text: str, *, permanent: bool) -> Write[int]:
        """Delete a version, softly at first. Raises RegistryError."""
        name = str(subject)
        self._check_writable(subject)
        number = _version_number(text)
        everything = self.subjects.versions(name, deleted=True)
        if not everything:
            raise errors.subject_not_found(name)
        if number == -1:
            number = max(everything if permanent else self.subjects.versions(name), default=-1)
        if number not in everything:
            raise errors.version_not_found(number if number != -1 else text)
        version = everything[number]
        if permanent and not version.is_deleted:
            raise errors.version_not_soft_deleted(name, number)
        if not permanent and version.is_deleted:
            raise errors.version_soft_deleted(name, number)
        self._check_unreferenced(name, [number])
        if permanent:
            return Write(number, (Entry(SchemaKey(subject=name, version=number), None),))
        schema = self.subjects.schema_of(name, version)
        entry = self._version_entry(name, number, version.schema_id, schema, deleted=True)
        return Write(number, (entry,))

    def delete_subject(self, subject: SubjectName, *, permanent: bool) -> Write[list[int]]:
        """Delete all versions of a subject, softly at first. Raises RegistryError."""
        name = str(subject)
        self._check_writable(subject)
        everything = self.subjects.versions(name, deleted=True)
        living = self.subjects.versions(name)
        if not everything:
            raise errors.subject_not_found(name)
        if permanent:
            if living:
                raise errors.subject_not_soft_deleted(name)
            entries = [
                Entry(SchemaKey(subject=name, version=number), None) for number in everything
            ]
            entries += self._without_settings(name)
            return Write(list(everything), tuple(entries))
        if not living:
            raise errors.subject_soft_deleted(name)
        self._check_unreferenced(name, list(living))
        value = DeleteSubjectValue(subject=name, version=max(living))
        entries = [Entry(DeleteSubjectKey(subject=name), value), *self._without_settings(name)]
        return Write(list(living), tuple(entries))

    def _without_settings(self, subject: str) -> list[Entry]:
        entries = []
        if self.subjects.config(subject) is not None:
            entries.append(Entry(ConfigKey(subject=subject), None))
        if self.subjects.mode(subject) is not None:
            entries.append(Entry(ModeKey(subject=subject), None))
        return entries

    def _check_unreferenced(self, subject: str, numbers: list[int]) -> None:
        for number in numbers:
            if self.subjects.referrers(subject, number):
                key = f'{{"keytype":"SCHEMA","subject":"{subject}","version":{number},"magic":1}}'
                raise errors.reference_exists(key)

    def _check_writable(self, subject: SubjectName) -> None:
        if self.effective_mode(str(subject)).startswith("READONLY"):
            raise _read_only(subject)

    # ---- configs, modes, contexts

    def set_config(self, scope: str | None, changes: Mapping[str, Any]) -> Write[ConfigValue]:
        """Set some of a scope's compatibility settings; a null clears one. Raises RegistryError."""
        level = changes.get("compatibility_level")
        if level is not None and level not in Level.__members__:
            raise errors.invalid_level()
        before = self.subjects.config(scope) or ConfigValue()
        after = msgspec.structs.replace(before, **changes)
        return Write(after, (Entry(ConfigKey(subject=scope), after),))

    def delete_config(self, scope: str | None) -> Write[ConfigValue]:
        """Forget a scope's settings; the answer is what they were. Raises RegistryError."""
        before = self.subjects.config(scope)
        if before is None:
            if scope is not None:
                raise errors.subject_not_found(scope)
            return Write(ConfigValue(compatibility_level=self._default_level.name))
        return Write(before, (Entry(ConfigKey(subject=scope), None),))

    def set_mode(
        self, scope: str | None, mode: str, *, force: bool, recursive: bool = False
    ) -> Write[str]:
        """Set the mode of a scope; `recursive` forgets the modes of what lies in it. Raises RegistryError."""
        if not self._mode_mutability:
            raise errors.operation_not_permitted("Mode changes are not allowed")
        if mode not in MODES:
            raise errors.invalid_mode()
        if mode == "IMPORT" and not force and self._has_living(scope):
            raise errors.operation_not_permitted("Cannot import since found existing subjects")
        inner = self._without_inner_modes(scope) if recursive else ()
        return Write(mode, (*inner, Entry(ModeKey(subject=scope), ModeValue(mode))))

    def _without_inner_modes(self, scope: str | None) -> list[Entry]:
        outer = None if scope is None else parse_subject(scope)
        if outer is not None and outer.name:
            return []
        return [
            Entry(ModeKey(subject=each), None)
            for each in self.subjects.mode_scopes()
            if each != scope and (outer is None or parse_subject(each).context == outer.context)
        ]

    def _has_living(self, scope: str | None) -> bool:
        if scope is not None and parse_subject(scope).name:
            return bool(self.subjects.versions(scope))
        context = None if scope is None else parse_subject(scope).context
        return any(
            self.subjects.versions(str(each))
            for each in self.subjects.subjects()
            if context in (None, each.context)
        )

    def delete_mode(self, scope: str | None, *, recursive: bool = False) -> Write[str]:
        """Forget a scope's mode; the answer is what it was. Raises RegistryError."""
        mode = self.subjects.mode(scope)
        if mode is None and scope is not None:
            raise errors.subject_not_found(scope)
        inner = self._without_inner_modes(scope) if recursive else ()
        return Write(mode or DEFAULT_MODE, (*inner, Entry(ModeKey(subject=scope), None)))

    def delete_context(self, context: str) -> Write[None]:
        """Forget a context in which nothing is registered. Raises RegistryError."""
        if any(each.context == context for each in self.subjects.subjects()):
            raise errors.context_not_empty(context)
        return Write(None, (Entry(ContextKey(context=context), None),))


def _scopes(subject: str | None) -> list[str | None]:
    """Where settings of a subject may stand, the weakest first."""
    scopes: list[str | None] = [None]
    if subject is not None:
        name = parse_subject(subject)
        scopes.append(f":{name.context}:")
        if name.name:
            scopes.append(subject)
    return scopes


def _version_number(text: str) -> int:
    if text in ("latest", "-1"):
        return -1
    try:
        number = int(text)
    except ValueError:
        raise errors.invalid_version(text) from None
    if not 1 <= number <= _MAX_VERSION:
        raise errors.invalid_version(text)
    return number


def _invalid(wanted: Wanted, details: str) -> errors.RegistryError:
    return errors.invalid_schema(f"Invalid schema of type {wanted.schema_type}, details: {details}")


def _read_only(subject: SubjectName) -> errors.RegistryError:
    return errors.operation_not_permitted(
        f"Subject {subject.name} in context {subject.context} is in read-only mode"
    )
