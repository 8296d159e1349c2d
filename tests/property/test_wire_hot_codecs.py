"""Produce and Fetch responses by hand agree with the compiled codec, byte for byte and value for value."""

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.wire.codec import encode
from headrace.wire.fetch_response_codec import (
    FetchDetails,
    FetchedPartition,
    FetchedTopic,
    encode_fetch_response,
)
from headrace.wire.messages.fetch import FetchResponse
from headrace.wire.messages.produce import ProduceResponse
from headrace.wire.produce_response_codec import (
    ProduceErrorDetails,
    ProducePartitionResult,
    ProduceTopicResult,
    encode_produce_response,
)
from tests.unit.wire.random_messages import random_message

produce_versions = st.integers(3, 13)
fetch_versions = st.integers(4, 18)
seeds = st.integers(0, 2**32)
several = settings(max_examples=150, deadline=None)


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
