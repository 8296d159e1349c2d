"""The stream of changes: its bytes, its offsets, and who needs a snapshot."""

from uuid import UUID

import msgspec
import pytest

from headrace.controller import changes
from headrace.controller.changes import (
    BrokerRegistered,
    ChangeBatch,
    ChangeLog,
    ConfigChanged,
    PartitionChanged,
    ProducerIdsAllocated,
    TopicCreated,
    decode,
    encode,
)
from headrace.controller.cluster_state import ClusterState, follow
from headrace.controller.values import Broker, ConfigKind, Endpoint, PartitionState
from headrace.errors import MalformedMessage

ID = UUID("5d1ae0c6-3b1f-4a86-9d55-0f6c3a0b8e21")
LED = PartitionState((1, 2), (1, 2), leader=1, leader_epoch=0, partition_epoch=0)


def test_a_batch_as_bytes() -> None:
    batch = ChangeBatch(
        4,
        12,
        (
            BrokerRegistered(Broker(1, 9, (Endpoint("PLAINTEXT", "h", 9092),), "r")),
            TopicCreated("t", ID, (LED,)),
            ConfigChanged(ConfigKind.TOPIC, "t", {"a": "1"}),
        ),
    )
    data = encode(batch)
    assert data == (
        b'{"controller_epoch":4,"next_offset":12,"changes":['
        b'{"type":"broker","broker":{"broker_id":1,"epoch":9,"endpoints":[{"listener":"PLAINTEXT",'
        b'"host":"h","port":9092,"security_protocol":"PLAINTEXT"}],"rack":"r",'
        b'"shutting_down":false,"offline":[],"directories":[],"features":[]}},'
        b'{"type":"topic","name":"t","topic_id":"5d1ae0c6-3b1f-4a86-9d55-0f6c3a0b8e21",'
        b'"partitions":[{"replicas":[1,2],"isr":[1,2],"leader":1,"leader_epoch":0,'
        b'"partition_epoch":0}]},'
        b'{"type":"config","kind":2,"name":"t","values":{"a":"1"}}],"is_snapshot":false,"skippable":[]}'
    )
    assert decode(data) == batch


def test_an_unknown_kind_of_change_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="later"):
        decode(b'{"controller_epoch":4,"next_offset":1,"changes":[{"type":"later"}]}')


def of_later(*, skippable: str) -> bytes:
    """What a later version writes: a kind and a field that this one does not know, beside what it knows."""
    return (
        b'{"controller_epoch":4,"next_offset":9,"format":2,"changes":['
        b'{"type":"config","kind":2,"name":"t","values":{"a":"1"},"more":1},'
        b'{"type":"later","name":{"type":"config"}},'
        b'{"type":"producer_ids","next_producer_id":7}],"is_snapshot":true,"skippable":['
        + skippable.encode()
        + b"]}"
    )


def test_an_unknown_kind_is_skipped_if_its_writer_allows_that() -> None:
    known = (ConfigChanged(ConfigKind.TOPIC, "t", {"a": "1"}), ProducerIdsAllocated(7))
    assert decode(of_later(skippable='"later"')) == ChangeBatch(4, 9, known, True, ("later",))
    for others in ("", '"other"', "1"):
        with pytest.raises(MalformedMessage):
            decode(of_later(skippable=others))


def test_a_known_kind_is_never_skipped() -> None:
    damaged = of_later(skippable='"later","producer_ids"').replace(b'id":7', b'id":"x"')
    with pytest.raises(MalformedMessage):
        decode(damaged)


def test_a_writer_names_what_may_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "SKIPPABLE_KINDS", frozenset(("producer_ids", "config")))
    batch = ChangeBatch(4, 2, (TopicCreated("t", ID, (LED,)), ProducerIdsAllocated(7)))
    assert decode(encode(batch)).skippable == ("producer_ids",)
    assert decode(encode(batch)).changes == batch.changes


def test_readers_catch_up_or_need_a_snapshot() -> None:
    log = ChangeLog(4, first_offset=10, limit=4)
    changes = [ProducerIdsAllocated(n) for n in range(6)]
    assert log.append(changes[:3]).next_offset == 13
    batch = log.read(4, 11)
    assert batch is not None
    assert batch.changes == tuple(changes[1:3])
    assert log.read(4, 13) == ChangeBatch(4, 13, ())
    assert log.read(3, 11) is None, "another controller's offsets"
    assert log.read(4, 14) is None, "not yet written"
    log.append(changes[3:])
    assert log.read(4, 13) is None, "forgotten"
    batch = log.read(4, 14)
    assert batch is not None
    assert (batch.next_offset, batch.changes) == (16, tuple(changes[4:]))


def test_a_snapshot_replaces_what_was_there() -> None:
    state = ClusterState()
    state.apply(TopicCreated("t", ID, (LED,)))
    version = state.version
    snapshot = ChangeBatch(1, 7, tuple(ClusterState().snapshot()), is_snapshot=True)
    after = follow(state, snapshot)
    assert after is not state
    assert not after.topics
    assert "t" in state.topics
    assert follow(state, ChangeBatch(1, 8, (ProducerIdsAllocated(5),))) is state
    assert state.version == version + 1


@pytest.mark.parametrize(
    ("after", "fault"),
    [
        (msgspec.structs.replace(LED, leader_epoch=-1, partition_epoch=1), "leader epoch"),
        (msgspec.structs.replace(LED, leader_epoch=1), "partition epoch"),
        (msgspec.structs.replace(LED, leader=2, partition_epoch=1), "two leaders in one epoch"),
    ],
)
def test_a_step_back_stops_us(after: PartitionState, fault: str) -> None:
    state = ClusterState()
    state.apply(TopicCreated("t", ID, (LED,)))
    with pytest.raises(AssertionError, match=fault):
        state.apply(PartitionChanged("t", 0, after))
