"""The records of `_schemas`: the bytes that Confluent's registry writes and reads."""

import msgspec
import pytest

from headrace.registry.state.metadata import Metadata, Rule, RuleSet
from headrace.registry.state.records import (
    ClearSubjectKey,
    ClearSubjectValue,
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
    NoopKey,
    Reference,
    SchemaKey,
    SchemaValue,
    Value,
    decode,
    digest_of,
    encode_key,
    encode_value,
    guid_of,
    own_form,
)

GOLDEN: list[tuple[Key, bytes, Value | None, bytes | None]] = [
    (
        SchemaKey(subject="s", version=1),
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        SchemaValue(subject="s", version=1, id=7, schema='"int"', deleted=False),
        b'{"subject":"s","version":1,"id":7,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}',
    ),
    (
        SchemaKey(subject=":.c:s", version=2),
        b'{"keytype":"SCHEMA","subject":":.c:s","version":2,"magic":1}',
        SchemaValue(
            subject=":.c:s",
            version=2,
            id=8,
            schema_type="JSON",
            references=(Reference("n", "t", 3),),
            metadata=Metadata(properties={"a": "b"}),
            schema="{}",
            deleted=True,
        ),
        b'{"subject":":.c:s","version":2,"id":8,"schemaType":"JSON",'
        b'"references":[{"name":"n","subject":"t","version":3}],'
        b'"metadata":{"properties":{"a":"b"}},"schema":"{}","deleted":true}',
    ),
    (SchemaKey(subject="s", version=1), b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', None, None),
    (
        ConfigKey(),
        b'{"keytype":"CONFIG","magic":0}',
        ConfigValue(compatibility_level="FULL"),
        b'{"compatibilityLevel":"FULL"}',
    ),
    (
        ModeKey(subject="s"),
        b'{"keytype":"MODE","subject":"s","magic":0}',
        ModeValue(subject="s", mode="READONLY"),
        b'{"subject":"s","mode":"READONLY"}',
    ),
    (
        DeleteSubjectKey(subject="s"),
        b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}',
        DeleteSubjectValue(subject="s", version=3),
        b'{"subject":"s","version":3}',
    ),
    (
        ClearSubjectKey(subject="s"),
        b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}',
        ClearSubjectValue(subject="s"),
        b'{"subject":"s"}',
    ),
    (
        ContextKey(context=".c"),
        b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}',
        ContextValue(context=".c"),
        b'{"tenant":"default","context":".c"}',
    ),
    (NoopKey(), b'{"keytype":"NOOP","magic":0}', None, None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "key_bytes", "value", "value_bytes"), GOLDEN)
def test_records_have_these_bytes(
    key: Key, key_bytes: bytes, value: Value | None, value_bytes: bytes | None
) -> None:
    assert encode_key(key) == key_bytes
    assert encode_value(value) == value_bytes
    assert decode(key_bytes, value_bytes) == Entry(key, value)


def test_values_of_newer_registries_are_read() -> None:
    value = (
        b'{"subject":"s","version":1,"id":1,"guid":"x","ts":5,"md5":"abc","schemaType":"AVRO",'
        b'"references":[],"metadata":null,"ruleSet":null,"schema":"\\"int\\"","schemaTags":[],"deleted":false}'
    )
    read = decode(GOLDEN[0][1], value).value
    assert isinstance(read, SchemaValue)
    assert (read.id, read.schema, read.deleted) == (1, '"int"', False)


@pytest.mark.parametrize(
    "key", [b"", b"{}", b'{"keytype":"OTHER"}', b"\xff", b'{"keytype":"SCHEMA"}']
)
def test_other_records_are_refused(key: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(key, None)


def test_digests_tell_schemas_apart() -> None:
    plain = digest_of('"int"', (), None, None)
    assert guid_of(plain) == "ef524ea1-b91e-7317-3d93-8ade36c1db32"  # MD5 of the text
    different = {
        plain,
        digest_of('"long"', (), None, None),
        digest_of('"int"', (Reference("n", "s", 1),), None, None),
        digest_of('"int"', (Reference("n", "s", 2),), None, None),
        digest_of('"int"', (), Metadata(), None),
        digest_of('"int"', (), Metadata(properties={"a": "b"}), None),
        digest_of('"int"', (), None, RuleSet(domain_rules=[Rule(name="r")])),
    }
    assert len(different) == 7
    # As Confluent's registry computes it.
    ruled = RuleSet(
        domain_rules=[Rule(name="r", kind="CONDITION", type="CEL", mode="WRITE", expr="true")]
    )
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
    assert guid_of(digest_of(text, (), None, ruled)) == "66d47d1b-d538-7161-f0dc-fc038e1c5bf8"
    tagged = Metadata(properties={"confluent:version": "1"})
    assert guid_of(digest_of(text, (), tagged, None)) == "0ec28509-4a8e-6229-cec7-6e55e0ad42f9"


@pytest.mark.parametrize(
    ("key", "form"),
    [
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', ConfigKey()),
        (b'{"keytype":"MODE","subject":null,"magic":0}', ModeKey()),
        (b'{"magic":0,"keytype":"SCHEMA","version":1,"subject":"s"}', SchemaKey(subject="s", version=1)),
    ],
)  # fmt: skip
def test_keys_in_the_forms_of_other_registries(key: bytes, form: Key) -> None:
    assert own_form(decode(key, None).key) == form
    assert encode_key(form) != key
