"""Correlation, headers and version choice, without a connection."""

import pytest

from headrace.client.exchange import (
    Exchange,
    VersionNotOffered,
    api_versions_request,
    highest_common_version,
    next_api_versions_version,
    offered_versions,
)
from headrace.errors import MalformedMessage
from headrace.wire.api_keys import ApiKey
from headrace.wire.codec import decode, encode
from headrace.wire.error_code import ErrorCode
from headrace.wire.framing import FrameReader
from headrace.wire.headers import decode_request_header
from headrace.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.answers import answer_frame, framed


def test_a_request_carries_key_version_correlation_and_client_id() -> None:
    exchange = Exchange("me")
    request = MetadataRequest(topics=None)
    exchange.ask(request, 1)
    (frame,) = FrameReader().feed(b"".join(exchange.ask(request, 12)))
    header = decode_request_header(frame)
    assert header[:4] == (ApiKey.METADATA, 12, 1, "me")
    assert decode(MetadataRequest, 12, frame, header.size) == request


def test_answers_come_in_the_order_of_the_requests() -> None:
    exchange = Exchange("me")
    exchange.ask(MetadataRequest(), 12)
    exchange.ask(HeartbeatRequest(), 3)
    assert exchange.waiting_count == 2
    metadata = MetadataResponse(cluster_id="c", controller_id=1)
    heartbeat = HeartbeatResponse(error_code=27)
    stream = answer_frame(0, metadata, 12) + answer_frame(1, heartbeat, 3)
    assert exchange.feed(stream[:30]) == [metadata]
    assert exchange.feed(stream[30:]) == [heartbeat]
    assert exchange.waiting_count == 0


def test_a_told_request_waits_for_nothing_but_takes_a_correlation_id() -> None:
    exchange = Exchange(None)
    exchange.tell(HeartbeatRequest(), 0)
    assert exchange.waiting_count == 0
    exchange.ask(HeartbeatRequest(), 0)
    assert exchange.feed(answer_frame(1, HeartbeatResponse(), 0)) == [HeartbeatResponse()]


@pytest.mark.parametrize("correlation_id", [1, -1])
def test_an_answer_to_something_else_is_malformed(correlation_id: int) -> None:
    exchange = Exchange("me")
    exchange.ask(HeartbeatRequest(), 0)
    with pytest.raises(MalformedMessage, match="not the next awaited"):
        exchange.feed(answer_frame(correlation_id, HeartbeatResponse(), 0))


def test_an_answer_to_nothing_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="not the next awaited"):
        Exchange("me").feed(answer_frame(0, HeartbeatResponse(), 0))


def test_a_request_that_cannot_be_encoded_is_not_awaited() -> None:
    exchange = Exchange("me")
    with pytest.raises(TypeError):
        exchange.ask(MetadataRequest(topics=None), 0)
    assert exchange.waiting_count == 0


def test_a_refused_version_is_answered_in_version_0() -> None:
    exchange = Exchange("me")
    exchange.ask(api_versions_request(), 4)
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=2)],
    )
    (answer,) = exchange.feed(framed(bytes(4) + encode(refusal, 0)))
    assert answer == refusal
    assert isinstance(answer, ApiVersionsResponse)
    assert next_api_versions_version(answer, 4) == 2


def test_asking_for_versions_again_always_ends() -> None:
    refusal = ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=9)],
    )
    assert next_api_versions_version(refusal, 4) == 3
    assert next_api_versions_version(refusal, 0) is None
    empty = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert next_api_versions_version(empty, 4) == 0
    assert next_api_versions_version(ApiVersionsResponse(), 4) is None


def test_an_error_instead_of_versions_is_told() -> None:
    with pytest.raises(VersionNotOffered, match="INVALID_REQUEST"):
        offered_versions(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))


def test_the_highest_common_version_is_chosen() -> None:
    request = MetadataRequest()
    assert highest_common_version(request, {ApiKey.METADATA: (0, 5)}) == 5
    assert highest_common_version(request, {ApiKey.METADATA: (0, 99)}) == 13
    with pytest.raises(VersionNotOffered, match="Metadata 0-13"):
        highest_common_version(request, {ApiKey.METADATA: (14, 15)})
    with pytest.raises(VersionNotOffered, match="None"):
        highest_common_version(request, {})
