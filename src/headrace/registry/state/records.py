"""The records of the topic `_schemas`, in Confluent's key and value format, so that registries can replace each other. Pure.

A key's attributes stand in a fixed order, because compaction compares bytes. Confluent's registry writes the key of the
settings for all without a subject; versions before 8 wrote `"subject":null`, and both are read.
"""

import hashlib
import struct
from typing import Any, Final
from uuid import UUID

import msgspec

from headrace.registry.state.metadata import Metadata, RuleSet

AVRO: Final = "AVRO"


class Reference(msgspec.Struct, frozen=True, order=True):
    """A name that a schema uses, and the version that defines it."""

    name: str
    subject: str
    version: int


class SchemaKey(msgspec.Struct, frozen=True, tag_field="keytype", tag="SCHEMA"):
    """A version of a subject."""

    subject: str
    version: int
    magic: int = 1


class ConfigKey(msgspec.Struct, frozen=True, tag_field="keytype", tag="CONFIG"):
    """The compatibility settings of a subject or a context; `None`: of all."""

    subject: str | None = None
    magic: int = 0


class ModeKey(msgspec.Struct, frozen=True, tag_field="keytype", tag="MODE"):
    """The mode of a subject or a context; `None`: of all."""

    subject: str | None = None
    magic: int = 0


class DeleteSubjectKey(msgspec.Struct, frozen=True, tag_field="keytype", tag="DELETE_SUBJECT"):
    """The soft deletion of a subject up to a version."""

    subject: str
    magic: int = 0


class ClearSubjectKey(msgspec.Struct, frozen=True, tag_field="keytype", tag="CLEAR_SUBJECT"):
    """A subject whose deleted versions are forgotten."""

    subject: str
    magic: int = 0


class ContextKey(msgspec.Struct, frozen=True, tag_field="keytype", tag="CONTEXT"):
    """A context."""

    tenant: str = "default"
    context: str = "."
    magic: int = 0


class NoopKey(msgspec.Struct, frozen=True, tag_field="keytype", tag="NOOP"):
    """Written to find the end of the topic."""

    magic: int = 0


Key = SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey


class SchemaValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A version of a subject."""

    subject: str
    version: int
    id: int
    md5: str | None = None  # read, but not written: Confluent's registry adds it to secret metadata
    schema_type: str | None = None
    references: tuple[Reference, ...] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    schema: str
    deleted: bool

    def __post_init__(self) -> None:
        # Earlier registries leave the type AVRO out; one that is set here is written out.
        msgspec.structs.force_setattr(self, "schema_type", self.schema_type or AVRO)
        msgspec.structs.force_setattr(self, "references", self.references or None)


class ConfigValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The compatibility settings of a subject, a context, or all."""

    subject: str | None = None
    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: str | None = None
    compatibility_policy: str | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None


class ModeValue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """READWRITE, READONLY, READONLY_OVERRIDE, IMPORT or FORWARD."""

    subject: str | None = None
    mode: str


class DeleteSubjectValue(msgspec.Struct, frozen=True):
    """The versions up to this one are deleted."""

    subject: str
    version: int


class ClearSubjectValue(msgspec.Struct, frozen=True):
    """The subject's deleted versions are forgotten."""

    subject: str


class ContextValue(msgspec.Struct, frozen=True):
    """A context."""

    tenant: str = "default"
    context: str = "."


Value = (
    SchemaValue | ConfigValue | ModeValue | DeleteSubjectValue | ClearSubjectValue | ContextValue
)

_VALUES: Final[dict[type[Any], Any]] = {
    SchemaKey: SchemaValue,
    ConfigKey: ConfigValue,
    ModeKey: ModeValue,
    DeleteSubjectKey: DeleteSubjectValue,
    ClearSubjectKey: ClearSubjectValue,
    ContextKey: ContextValue,
}

# Without a subject, these keys are the ones of the settings for all.
_KEYS_FOR_ALL: Final[dict[Key, bytes]] = {
    ConfigKey(): b'{"keytype":"CONFIG","magic":0}',
    ModeKey(): b'{"keytype":"MODE","magic":0}',
}

_decode_key = msgspec.json.Decoder(Key).decode
_encode = msgspec.json.Encoder().encode
_decoders = {
    key: msgspec.json.Decoder(value, strict=False).decode for key, value in _VALUES.items()
}


class Entry(msgspec.Struct, frozen=True):
    """One record of the topic; a value of None deletes what the key names."""

    key: Key
    value: Value | None
    timestamp: int | None = None  # in milliseconds, once the record was written


def encode_key(key: Key) -> bytes:
    """The key's bytes, the same for the same key."""
    return _KEYS_FOR_ALL.get(key) or _encode(key)


def encode_value(value: Value | None) -> bytes | None:
    """The value's bytes, or None for a tombstone."""
    return None if value is None else _encode(value)


def decode(key: bytes, value: bytes | None, timestamp: int | None = None) -> Entry:
    """A record of the topic. Raises msgspec.MsgspecError."""
    decoded = _decode_key(key)
    decoder = _decoders.get(type(decoded))
    content = decoder(value) if decoder is not None and value is not None else None
    return Entry(decoded, content, timestamp)


def own_form(key: Key) -> Key:
    """The key that this registry writes for the same thing: version numbers of key formats may differ."""
    return msgspec.structs.replace(key, magic=1) if isinstance(key, SchemaKey) else key


def digest_of(
    schema: str,
    references: tuple[Reference, ...],
    metadata: Metadata | None,
    rule_set: RuleSet | None,
) -> bytes:
    """MD5 over everything that makes a schema what it is; Confluent's GUID is made of it."""
    digest = hashlib.md5(schema.encode(), usedforsecurity=False)
    for reference in references:
        digest.update(reference.name.encode() + reference.subject.encode())
        digest.update(struct.pack(">i", reference.version))
    for extension in (metadata, rule_set):
        if extension is not None:
            digest.update(b"\x01")
            digest.update("".join(extension.hashed()).encode())
    return digest.digest()


def guid_of(digest: bytes) -> str:
    """The schema's GUID as text."""
    return str(UUID(bytes=digest))
