"""Records of __consumer_offsets: what is written is read back, and nothing else breaks the reader."""

from hypothesis import given
from hypothesis import strategies as st

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
from headrace.coordinator.timers import Deadlines
from headrace.ids import NO_TOPIC_ID

TEXT = st.text(max_size=20)
MAYBE_TEXT = st.none() | TEXT
I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
# -1 stands for "none" on disk.
TIMEOUT = st.integers(0, 2**31 - 1)

OFFSETS = st.builds(
    CommittedOffset,
    offset=I64,
    leader_epoch=I32,
    metadata=TEXT,
    commit_timestamp_ms=I64,
    expire_timestamp_ms=st.none(),
    topic_id=st.just(NO_TOPIC_ID) | st.uuids(),
) | st.builds(
    CommittedOffset,
    offset=I64,
    leader_epoch=st.just(-1),
    metadata=TEXT,
    commit_timestamp_ms=I64,
    expire_timestamp_ms=st.integers(0, 2**63 - 1),
    topic_id=st.just(NO_TOPIC_ID),
)
MEMBERS = st.builds(
    StoredMember,
    member_id=TEXT,
    instance_id=MAYBE_TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout_ms=TIMEOUT,
    session_timeout_ms=TIMEOUT,
    subscription=st.binary(max_size=40),
    assignment=st.binary(max_size=40),
)
METADATA = st.builds(
    GroupMetadata,
    protocol_type=TEXT,
    generation_id=I32,
    protocol_name=MAYBE_TEXT,
    leader_id=MAYBE_TEXT,
    state_since_ms=I64,
    members=st.lists(MEMBERS, max_size=3).map(tuple),
)
RECORDS = st.builds(
    OffsetRecord, group_id=TEXT, topic=TEXT, partition=I32, committed=st.none() | OFFSETS
) | st.builds(GroupRecord, group_id=TEXT, metadata=st.none() | METADATA)


@given(RECORDS)
def test_what_is_written_is_read_back(record: OffsetRecord | GroupRecord) -> None:
    assert decode_record(*encode_record(record)) == record


@given(RECORDS, st.data())
def test_damaged_bytes_are_malformed_or_another_record_but_never_a_crash(
    record: OffsetRecord | GroupRecord, data: st.DataObject
) -> None:
    key, value = encode_record(record)
    damaged = bytearray(value if value is not None else b"\0\3")
    position = data.draw(st.integers(0, len(damaged) - 1))
    damaged[position] = data.draw(st.integers(0, 255))
    try:
        decode_record(key, bytes(damaged))
    except MalformedRecord:
        pass


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_garbage_is_malformed_or_passed_over(key: bytes, value: bytes) -> None:
    try:
        decode_record(key, value)
    except MalformedRecord:
        pass
    subscribed_topics(value)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["set", "cancel", "pop"]), st.sampled_from("abc"), st.integers(0, 50)
        ),
        max_size=60,
    )
)
def test_deadlines_are_what_a_plain_dictionary_says(steps: list[tuple[str, str, int]]) -> None:
    deadlines, model = Deadlines(), dict[object, int]()
    for step, key, at_ms in steps:
        if step == "set":
            deadlines.set(key, at_ms)
            model[key] = at_ms
        elif step == "cancel":
            deadlines.cancel(key)
            model.pop(key, None)
        else:
            popped = deadlines.pop_due(at_ms)
            earliest = min(model.values(), default=None)
            if earliest is None or earliest > at_ms:
                assert popped is None
            else:
                assert popped is not None
                assert model.pop(popped) == earliest
        assert deadlines.next_ms() == min(model.values(), default=None)
        assert len(deadlines) == len(model)
