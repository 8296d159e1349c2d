"""Produce and Fetch by hand agree with the compiled codec, byte for byte and value for value."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import MalformedMessage
from headrace.wire.codec import decode, encode
from headrace.wire.fetch_request_codec import FetchRequestView, decode_fetch_request
from headrace.wire.fetch_response_codec import (
    FetchDetails,
    FetchedPartition,
    FetchedTopic,
    encode_fetch_response,
)
from headrace.wire.messages.fetch import FetchRequest, FetchResponse
from headrace.wire.messages.produce import ProduceRequest, ProduceResponse
from headrace.wire.produce_codec import (
    ProduceErrorDetails,
    ProducePartitionResult,
    ProduceRequestView,
    ProduceTopicResult,
    decode_produce_request,
    encode_produce_response,
)
from tests.unit.wire.random_messages import random_message

produce_versions = st.integers(3, 13)
fetch_versions = st.integers(4, 18)
seeds = st.integers(0, 2**32)
several = settings(max_examples=150, deadline=None)


def produce_row(view: ProduceRequestView) -> Any:
    topics = [
        (topic.name, topic.topic_id, [(index, records) for index, records in topic.partitions])
        for topic in view.topics
    ]
    return view.transactional_id, view.acks, view.timeout_ms, topics


def produce_row_of_message(request: ProduceRequest) -> Any:
    topics = [
        (topic.name, topic.topic_id, [(one.index, one.records) for one in topic.partition_data])
        for topic in request.topic_data
    ]
    return request.transactional_id, request.acks, request.timeout_ms, topics


def fetch_row_of_message(request: FetchRequest) -> Any:
    replica_id, replica_epoch = request.replica_id, -1
    if request.replica_state is not None:
        replica_id = request.replica_state.replica_id
        replica_epoch = request.replica_state.replica_epoch
    topics = [
        (
            topic.topic,
            topic.topic_id,
            [
                (
                    one.partition,
                    one.current_leader_epoch,
                    one.fetch_offset,
                    one.last_fetched_epoch,
                    one.log_start_offset,
                    one.partition_max_bytes,
                    one.high_watermark,
                    one.replica_directory_id,
                )
                for one in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    forgotten = [
        (topic.topic, topic.topic_id, list(topic.partitions))
        for topic in request.forgotten_topics_data
    ]
    return FetchRequestView(
        replica_id,
        replica_epoch,
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
        topics,  # type: ignore[arg-type]  # rows compare equal to the named tuples
        forgotten,  # type: ignore[arg-type]  # as above
        request.rack_id,
    )


@several
@given(produce_versions, seeds)
def test_produce_requests(version: int, seed: int) -> None:
    raw = encode(random_message(ProduceRequest, version, Random(seed)), version)
    compiled = decode(ProduceRequest, version, raw)
    assert produce_row(decode_produce_request(version, raw)) == produce_row_of_message(compiled)
    shifted = memoryview(b"head" + raw + b"tail")
    assert produce_row(decode_produce_request(version, shifted, 4)) == produce_row_of_message(
        compiled
    )


@several
@given(fetch_versions, seeds)
def test_fetch_requests(version: int, seed: int) -> None:
    raw = encode(random_message(FetchRequest, version, Random(seed)), version)
    compiled = decode(FetchRequest, version, raw)
    assert decode_fetch_request(version, raw) == fetch_row_of_message(compiled)
    assert decode_fetch_request(version, memoryview(b"head" + raw), 4) == fetch_row_of_message(
        compiled
    )


@several
@given(st.sampled_from([ProduceRequest, FetchRequest]), st.integers(4, 13), seeds, st.data())
def test_damaged_requests_are_refused_alike(
    cls: Any, version: int, seed: int, data: st.DataObject
) -> None:
    raw = bytearray(encode(random_message(cls, version, Random(seed)), version))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    by_hand = decode_produce_request if cls is ProduceRequest else decode_fetch_request
    try:
        decode(cls, version, damaged)
    except MalformedMessage:
        # The cluster id, which the fetch decoder skips, may be what was damaged.
        try:
            by_hand(version, damaged)
        except MalformedMessage:
            return
        assert cls is FetchRequest
        return
    by_hand(version, damaged)


@several
@given(produce_versions, seeds)
def test_produce_responses(version: int, seed: int) -> None:
    response = random_message(ProduceResponse, version, Random(seed))
    topics = [
        ProduceTopicResult(
            topic.name,
            topic.topic_id,
            [
                ProducePartitionResult(
                    one.index,
                    one.error_code,
                    one.base_offset,
                    one.log_append_time_ms,
                    one.log_start_offset,
                    ProduceErrorDetails(one.error_message, one.record_errors, one.current_leader)
                    if one.error_message is not None or one.record_errors or one.current_leader
                    else None,
                )
                for one in topic.partition_responses
            ],
        )
        for topic in response.responses
    ]
    assert encode_produce_response(
        version,
        topics,
        throttle_time_ms=response.throttle_time_ms,
        node_endpoints=response.node_endpoints,
    ) == encode(response, version)


@several
@given(fetch_versions, seeds)
def test_fetch_responses(version: int, seed: int) -> None:
    response = random_message(FetchResponse, version, Random(seed))
    for topic in response.responses:
        for one in topic.partitions:
            one.records = one.records or b""
    topics = [
        FetchedTopic(topic.topic, topic.topic_id, [fetched(one) for one in topic.partitions])
        for topic in response.responses
    ]
    pieces = encode_fetch_response(
        version,
        topics,
        throttle_time_ms=response.throttle_time_ms,
        error_code=response.error_code,
        session_id=response.session_id,
        node_endpoints=response.node_endpoints,
    )
    assert b"".join(pieces) == encode(response, version)
    wanted = [one.records for topic in topics for one in topic.partitions if one.records]
    assert [piece for piece in pieces if any(piece is one for one in wanted)] == wanted


def fetched(one: Any) -> FetchedPartition:
    has_details = one.diverging_epoch or one.current_leader or one.snapshot_id
    return FetchedPartition(
        one.partition_index,
        one.error_code,
        one.high_watermark,
        one.last_stable_offset,
        one.log_start_offset,
        one.records,
        one.aborted_transactions,
        one.preferred_read_replica,
        FetchDetails(one.diverging_epoch, one.current_leader, one.snapshot_id)
        if has_details
        else None,
    )
