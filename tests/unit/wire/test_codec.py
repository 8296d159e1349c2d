"""What the compiled codec refuses, ignores and leaves uncopied. Agreement with kio is a property test."""

import tracemalloc

import pytest

from headrace.errors import MalformedMessage
from headrace.wire.codec import decode, decoder, encode, encode_pieces
from headrace.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from headrace.wire.messages.heartbeat import HeartbeatRequest
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse


def test_records_are_views_of_the_frame_and_are_sent_uncopied() -> None:
    records = bytes(1000)
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])]
    )
    assert any(piece is records for piece in encode_pieces(response, 12))
    raw = encode(response, 12)
    read = decode(FetchResponse, 12, raw).responses[0].partitions[0].records
    assert isinstance(read, memoryview)
    assert read.obj is raw


def test_bytes_after_the_message_are_ignored_as_kafka_does() -> None:
    raw = encode(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
    message, end = decoder(HeartbeatRequest, 4)(raw + b"more", 0)
    assert message == decode(HeartbeatRequest, 4, raw)
    assert end == len(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"\x7f\xff\xff\xff",  # v0-8: an array of 2^31-1 topics
        b"\x7f\xff\xff\xff" + bytes(41),
    ],
)
def test_an_array_that_cannot_fit_is_refused_before_it_is_made(raw: bytes) -> None:
    decoder(MetadataRequest, 1)
    tracemalloc.start()
    with pytest.raises(MalformedMessage):
        decode(MetadataRequest, 1, raw)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_a_compact_array_that_cannot_fit_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="longer than its message"):
        decode(MetadataResponse, 12, b"\0\0\0\0" + b"\xff\xff\xff\xff\x07" + bytes(20))


def test_a_varint_of_more_than_31_bits_is_refused() -> None:
    for length in (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\xff\x01"):
        with pytest.raises(MalformedMessage, match="31 bits"):
            decode(MetadataResponse, 12, b"\0\0\0\0" + length + bytes(20))


def test_null_where_the_version_forbids_it_is_refused() -> None:
    null_array = b"\xff\xff\xff\xff"
    assert decode(MetadataRequest, 1, null_array).topics is None
    with pytest.raises(MalformedMessage, match="null"):
        decode(MetadataRequest, 0, null_array)
    null_string = b"\xff\xff" + bytes(6)
    with pytest.raises(MalformedMessage, match="null"):
        decode(HeartbeatRequest, 0, null_string)


def test_a_string_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="HeartbeatRequest v0"):
        decode(HeartbeatRequest, 0, b"\x00\x01\xff" + bytes(6))


def test_a_known_tag_of_the_wrong_size_is_refused() -> None:
    good = encode(ApiVersionsResponse(finalized_features_epoch=5), 3)
    assert good.endswith(b"\x01\x01\x08" + bytes(7) + b"\x05")
    with pytest.raises(MalformedMessage, match="wrong size"):
        decode(ApiVersionsResponse, 3, good.replace(b"\x01\x01\x08", b"\x01\x01\x07"))


def test_fields_that_a_version_lacks_are_left_out_and_come_back_as_defaults() -> None:
    request = JoinGroupRequest(
        group_id="g",
        group_instance_id="static",
        reason="because",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    back = decode(JoinGroupRequest, 4, encode(request, 4))
    assert back.group_instance_id is None
    assert back.reason is None
    assert decode(JoinGroupRequest, 9, encode(request, 9)) == request


def test_a_version_that_does_not_exist_is_our_mistake() -> None:
    with pytest.raises(ValueError, match="versions 0-4, not 5"):
        encode(ApiVersionsRequest(), 5)
    with pytest.raises(ValueError, match="versions 0-4, not 5"):
        decode(ApiVersionsRequest, 5, b"")


def test_null_where_the_version_forbids_it_is_our_mistake_when_sent() -> None:
    with pytest.raises(TypeError):
        encode(MetadataRequest(topics=None), 0)
