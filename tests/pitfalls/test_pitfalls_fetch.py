"""Fetch and its sessions, where clients are known to fall: docs/protocol-pitfalls.md."""

import time
from uuid import UUID

import pytest

from headrace.records.batch_view import headers_in
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tests.differential.requests import batch, fetch, produce
from tests.pitfalls.conftest import Peer

BY_NAME, BY_ID = 12, 13


def ask(topic: str, *offsets: int, max_bytes: int = 1 << 20) -> FetchRequest:
    """One partition for each offset."""
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
        for index, offset in enumerate(offsets)
    ]
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=wanted)])


def ask_patiently(topic: str, *offsets: int, max_wait_ms: int) -> FetchRequest:
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=ask(topic, *offsets).topics)


def open_session(topic: str, *offsets: int) -> FetchRequest:
    return FetchRequest(session_epoch=0, topics=ask(topic, *offsets).topics)


def write(peer: Peer, topic: str, *values: bytes, partition: int = 0) -> None:
    answer = peer.connection.send(produce(topic, batch(*values), partition=partition), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def only(answer: FetchResponse) -> PartitionData:
    (topic,) = answer.responses
    (partition,) = topic.partitions
    return partition


def offsets_in(found: PartitionData) -> list[int]:
    return [header.base_offset for _, header in headers_in(bytes(found.records or b""))]


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_no_records_are_an_empty_field_and_never_a_null_one(peer: Peer, version: int) -> None:
    topic = peer.topic()
    request = fetch(topic, 0, topic_id=peer.topic_id(topic))
    found = only(peer.connection.send(request, version))
    assert found.records is not None
    assert len(found.records) == 0


def test_aborted_transactions_are_null_unless_asked_for(peer: Peer) -> None:
    topic = peer.topic()
    write(peer, topic, b"a")
    assert only(peer.connection.send(ask(topic, 0), BY_NAME)).aborted_transactions is None
    committed = FetchRequest(isolation_level=1, topics=ask(topic, 0).topics)
    assert only(peer.connection.send(committed, BY_NAME)).aborted_transactions == []


def test_a_full_answer_has_every_partition_that_was_asked_for(peer: Peer) -> None:
    topic = peer.topic(3)
    write(peer, topic, b"a", partition=1)
    answer = peer.connection.send(ask(topic, 0, 0, 99, 0), BY_NAME)
    errors = {each.partition_index: each.error_code for each in answer.responses[0].partitions}
    assert errors == {0: 0, 1: 0, 2: 1, 3: 3}


def test_sessions_fail_at_the_top_and_without_topics(peer: Peer) -> None:
    topic = peer.topic()
    opened = peer.connection.send(open_session(topic, 0), BY_NAME)
    assert opened.session_id > 0
    wrong = {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND: (opened.session_id + 1, 1),
        ErrorCode.INVALID_FETCH_SESSION_EPOCH: (opened.session_id, 5),
    }
    for error, (session_id, epoch) in wrong.items():
        request = FetchRequest(session_id=session_id, session_epoch=epoch)
        answer = peer.connection.send(request, BY_NAME)
        assert (answer.error_code, list(answer.responses)) == (error, [])
    mixed = FetchRequest(session_id=opened.session_id, session_epoch=1)
    assert peer.connection.send(mixed, BY_ID).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_incremental_answer_has_only_news(peer: Peer) -> None:
    topic = peer.topic(2)
    opened = peer.connection.send(open_session(topic, 0, 0), BY_NAME)
    again = FetchRequest(session_id=opened.session_id, session_epoch=1)
    assert list(peer.connection.send(again, BY_NAME).responses) == []
    write(peer, topic, b"a", partition=1)
    third = FetchRequest(session_id=opened.session_id, session_epoch=2)
    assert only(peer.connection.send(third, BY_NAME)).partition_index == 1


def test_the_first_batch_comes_whole_whatever_the_limits(peer: Peer) -> None:
    topic = peer.topic(2)
    for partition in (0, 1):
        write(peer, topic, b"x" * 1000, partition=partition)
        write(peer, topic, b"y" * 1000, partition=partition)
    answer = peer.connection.send(ask(topic, 0, 0, max_bytes=10), BY_NAME)
    first, second = answer.responses[0].partitions
    assert offsets_in(first) == [0]
    assert offsets_in(second) == [], "only one is owed"
    limited = peer.connection.send(ask(topic, 0, max_bytes=1500), BY_NAME)
    assert offsets_in(only(limited)) == [0], "no batch is cut"


def test_the_batch_that_holds_the_offset_is_given(peer: Peer) -> None:
    topic = peer.topic()
    write(peer, topic, b"a", b"b", b"c")
    assert offsets_in(only(peer.connection.send(ask(topic, 2), BY_NAME))) == [0]


def test_too_little_waits_and_an_error_does_not(peer: Peer) -> None:
    topic = peer.topic(2)
    began = time.monotonic()
    peer.connection.send(ask_patiently(topic, 0, max_wait_ms=300), BY_NAME)
    assert time.monotonic() - began >= 0.29
    began = time.monotonic()
    peer.connection.send(ask_patiently(topic, 0, 99, max_wait_ms=30_000), BY_NAME)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(("offset", "error"), [(3, 1), (-1, 1), (2, 0), (0, 0)])
def test_offsets_out_of_range(peer: Peer, offset: int, error: int) -> None:
    topic = peer.topic()
    write(peer, topic, b"a", b"b")
    found = only(peer.connection.send(ask(topic, offset), BY_NAME))
    assert found.error_code == error
    assert found.high_watermark == (2 if error == 0 else -1)
    assert found.preferred_read_replica == -1


def test_epochs_that_do_not_fit_are_told_apart(peer: Peer) -> None:
    topic = peer.topic()
    write(peer, topic, b"a")
    ahead = only(peer.connection.send(fetch(topic, 0, leader_epoch=9), BY_NAME))
    assert ahead.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    right = only(peer.connection.send(fetch(topic, 0, leader_epoch=0), BY_NAME))
    assert right.error_code == ErrorCode.NONE


def test_an_unknown_id_is_not_an_unknown_name(peer: Peer) -> None:
    request = fetch("", 0, topic_id=UUID(int=99))
    assert only(peer.connection.send(request, BY_ID)).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    by_name = only(peer.connection.send(ask("pitfall-nowhere", 0), BY_NAME))
    assert by_name.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_stored_batches_carry_the_leaders_epoch_and_not_the_producers(peer: Peer) -> None:
    topic = peer.topic()
    forged = bytearray(batch(b"a"))
    forged[12:16] = (77).to_bytes(4, "big")
    answer = peer.connection.send(produce(topic, bytes(forged)), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    found = only(peer.connection.send(ask(topic, 0), BY_NAME))
    ((_, header),) = headers_in(bytes(found.records or b""))
    assert header.leader_epoch == 0
