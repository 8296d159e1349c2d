"""The floor answers as a broker would, so that the same clients measure both."""

from pathlib import Path

import pytest

from bench.beside_kafka.floor import Floor
from bench.beside_kafka.wire_frames import FETCH_VERSION, fetch_frame, produce_frame
from headrace.client.exchange import Exchange
from headrace.records.batch_reader import read_batch
from headrace.records.batch_view import headers_in
from headrace.wire.codec import decode, encode
from headrace.wire.error_code import ErrorCode
from headrace.wire.headers import response_body_offset
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.fetch import FetchRequest, FetchResponse
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


@pytest.fixture
def floor(tmp_path: Path) -> Floor:
    return Floor(9092, tmp_path)


def ask(floor: Floor, frame: bytes) -> bytes:
    return b"".join(floor.answer(without_length(frame)))


def without_length(frame: bytes) -> memoryview:
    return memoryview(bytearray(frame))[4:]


def test_a_topic_that_was_created_has_leaders(floor: Floor) -> None:
    exchange = Exchange("test")
    create = CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2)])
    wish = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    ask(floor, b"".join(Exchange("test").tell(create, 5)))
    answer = ask(floor, b"".join(exchange.ask(wish, 9)))
    (metadata,) = exchange.feed(answer)
    assert [each.leader_id for each in metadata.topics[0].partitions] == [1, 1]  # type: ignore[attr-defined] # an answer to Metadata


def test_what_was_produced_is_fetched_with_its_offsets(floor: Floor) -> None:
    produce = produce_frame("t", [b"one", b"two"], partition=1)
    for _ in range(3):
        answer = ask(floor, produce.frame)
        assert not produce.is_refused(answer)
        produce.check(answer)
    frame = without_length(ask(floor, fetch_frame("t", {1: 2})))
    body = response_body_offset(frame, FetchRequest.API_KEY, FETCH_VERSION)
    found = decode(FetchResponse, FETCH_VERSION, frame, body).responses[0].partitions[0]
    assert found.high_watermark == 6
    assert found.records is not None
    batches = bytes(found.records)
    assert [header.base_offset for _, header in headers_in(batches)] == [2, 4]
    first = batches[: len(batches) // 2]
    assert [(record.offset, record.value) for record in read_batch(first)] == [
        (2, b"one"),
        (3, b"two"),
    ]


def test_a_refused_request_is_noticed() -> None:
    produce = produce_frame("topic", [b"x"])
    refused = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="topic",
                partition_responses=[
                    PartitionProduceResponse(
                        index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1
                    )
                ],
            )
        ]
    )
    answer = bytes(4 + 4 + 1) + encode(refused, 9)  # length, correlation id, no tags
    assert produce.is_refused(answer)
    with pytest.raises(RuntimeError, match="error code 6"):
        produce.check(answer)
