"""Records of __consumer_offsets against bytes that Apache Kafka wrote."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from headrace.coordinator.group.stored_records import (
    CommittedOffset,
    GroupMetadata,
    GroupRecord,
    OffsetRecord,
    StoredMember,
    decode_record,
    encode_record,
)
from headrace.coordinator.group.subscription import subscribed_topics
from headrace.coordinator.record_fields import MalformedRecord
from headrace.ids import NO_TOPIC_ID
from headrace.wire.refusal import Refused

GOLDEN = {
    (kind, version): bytes.fromhex(hexadecimal)
    for line in (Path(__file__).parents[3] / "golden" / "consumer_offsets.txt")
    .read_text()
    .splitlines()
    if not line.startswith("#")
    for kind, version, hexadecimal in [line.split()]
}
OFFSET_KEY = GOLDEN["offset", "key"]
GROUP_KEY = GOLDEN["group", "key"]


def offset_record(version: int) -> OffsetRecord:
    return OffsetRecord(
        group_id="orders-app",
        topic="orders",
        partition=12,
        committed=CommittedOffset(
            offset=1234567890123,
            leader_epoch=7 if version >= 3 else -1,
            metadata="résumé",
            commit_timestamp_ms=1700000000000,
            expire_timestamp_ms=1700000600000 if version == 1 else None,
            topic_id=(
                UUID("01234567-89ab-cdef-1123-456789abcdef") if version == 4 else NO_TOPIC_ID
            ),
        ),
    )


def group_record(version: int) -> GroupRecord:
    subscription = bytes.fromhex("000100000001000174")
    members = (
        StoredMember(
            member_id="c1-uuid",
            instance_id=None,
            client_id="c1",
            client_host="/127.0.0.1",
            rebalance_timeout_ms=300000 if version >= 1 else 45000,
            session_timeout_ms=45000,
            subscription=subscription,
            assignment=bytes.fromhex("000100000000"),
        ),
        StoredMember(
            member_id="i2-uuid",
            instance_id="i2" if version >= 3 else None,
            client_id="c2",
            client_host="/10.0.0.2",
            rebalance_timeout_ms=60000 if version >= 1 else 10000,
            session_timeout_ms=10000,
            subscription=subscription,
            assignment=b"",
        ),
    )
    return GroupRecord(
        group_id="orders-app",
        metadata=GroupMetadata(
            protocol_type="consumer",
            generation_id=5,
            protocol_name="range",
            leader_id="c1-uuid",
            state_since_ms=1700000000000 if version >= 2 else -1,
            members=members,
        ),
    )


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_committed_offset_is_read(version: int) -> None:
    assert decode_record(OFFSET_KEY, GOLDEN["offset", f"v{version}"]) == offset_record(version)


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_group_is_read(version: int) -> None:
    assert decode_record(GROUP_KEY, GOLDEN["group", f"v{version}"]) == group_record(version)


def test_an_offset_is_written_as_version_4_and_with_its_own_expiry_as_1() -> None:
    assert encode_record(offset_record(4)) == (OFFSET_KEY, GOLDEN["offset", "v4"])
    assert encode_record(offset_record(1)) == (OFFSET_KEY, GOLDEN["offset", "v1"])


def test_an_offset_without_a_topic_id_has_no_tagged_field() -> None:
    record = OffsetRecord(
        group_id="orders-app",
        topic="orders",
        partition=12,
        committed=CommittedOffset(offset=0, commit_timestamp_ms=1),
    )
    assert encode_record(record) == (OFFSET_KEY, GOLDEN["offset-no-topic-id", "v4"])
    assert decode_record(*encode_record(record)) == record


def test_a_group_is_written_as_version_3() -> None:
    assert encode_record(group_record(3)) == (GROUP_KEY, GOLDEN["group", "v3"])


def test_an_empty_group() -> None:
    record = GroupRecord(
        group_id="orders-app",
        metadata=GroupMetadata(
            protocol_type="",
            generation_id=0,
            protocol_name=None,
            leader_id=None,
            state_since_ms=1700000000000,
        ),
    )
    assert encode_record(record) == (GROUP_KEY, GOLDEN["empty-group", "v3"])
    assert decode_record(*encode_record(record)) == record


def test_the_legacy_key_means_the_same() -> None:
    legacy = decode_record(GOLDEN["legacy-offset", "key"], GOLDEN["offset", "v3"])
    assert legacy == offset_record(3)


def test_tombstones() -> None:
    for record in (
        OffsetRecord(group_id="orders-app", topic="orders", partition=12, committed=None),
        GroupRecord(group_id="orders-app", metadata=None),
    ):
        key, value = encode_record(record)
        assert value is None
        assert decode_record(key, None) == record


@pytest.mark.parametrize("record_type", [3, 4, 8, 15, 16, 23, 32767, -1])
def test_types_of_other_group_protocols_are_passed_over(record_type: int) -> None:
    key = record_type.to_bytes(2, "big", signed=True) + b"\0\1g"
    assert decode_record(key, b"\0\0whatever") is None
    assert decode_record(key, None) is None


def test_fields_that_a_later_version_tags_on_are_passed_over() -> None:
    value = GOLDEN["offset-no-topic-id", "v4"]
    later = b"\0\5" + value[2:-1] + b"\2\0\x10" + bytes(range(16)) + b"\7\3abc"
    record = decode_record(OFFSET_KEY, later)
    assert isinstance(record, OffsetRecord)
    assert record.committed == CommittedOffset(
        offset=0, commit_timestamp_ms=1, topic_id=UUID(bytes=bytes(range(16)))
    )


@pytest.mark.parametrize("kind", ["offset", "group"])
@pytest.mark.parametrize("version", range(5))
def test_a_value_cut_anywhere_is_malformed_and_nothing_else(kind: str, version: int) -> None:
    key, value = GOLDEN[kind, "key"], GOLDEN[kind, f"v{version}"]
    for end in range(len(value)):
        with pytest.raises(MalformedRecord):
            decode_record(key, value[:end])
    for end in range(len(key)):
        with pytest.raises(MalformedRecord):
            decode_record(key[:end], value)


def test_a_number_without_end_is_not_read_to_its_end() -> None:
    before_the_metadata = GOLDEN["offset", "v4"][:14]
    with pytest.raises(MalformedRecord, match="more than 35 bits"):
        decode_record(OFFSET_KEY, before_the_metadata + b"\xff" * 1_000_000 + b"\x01")


def test_the_worked_example_in_the_docs() -> None:
    page = Path(__file__).parents[4] / "docs" / "formats" / "internal-topics.md"
    blocks = [
        b"".join(bytes.fromhex(line[:33]) for line in block.splitlines())
        for block in re.findall(r"```hex\n(.*?)```", page.read_text(), re.DOTALL)
    ]
    assert blocks == [OFFSET_KEY, GOLDEN["offset", "v4"]]


def test_a_string_that_has_no_room_in_a_record_is_refused() -> None:
    # Flexible requests can carry group ids longer than the key's 16-bit length.
    record = GroupRecord(group_id="g" * 40_000, metadata=None)
    with pytest.raises(Refused):
        encode_record(record)


def test_subscribed_topics() -> None:
    assert subscribed_topics(GOLDEN["subscription", "v3"]) == frozenset({"orders", "payments"})
    assert subscribed_topics(bytes.fromhex("0000 00000000 ffffffff")) == frozenset()


@pytest.mark.parametrize(
    "blob",
    [
        b"",
        b"\0",
        b"\0\0\0\0\0\1",
        b"\xff\xff\0\0\0\0",
        b"\0\0\xff\xff\xff\xff",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\0\0\0\1\xff\xffa",
        b"\0\0\0\0\0\1\0\2a",
        b"\0\0\0\0\0\1\0\1\xff",
    ],
)
def test_a_blob_that_is_no_subscription_is_not_guessed_at(blob: bytes) -> None:
    assert subscribed_topics(blob) is None
