"""What a decoder refuses though the frame is small enough, because too much would come of it."""

import pytest

from headrace.errors import MalformedMessage
from headrace.wire.codec import decode, encode
from headrace.wire.decoder_source import MAX_ELEMENTS
from headrace.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from headrace.wire.messages.fetch import FetchRequest
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.primitives import unsigned_varint


def test_a_compact_string_may_be_as_long_as_a_plain_one_could_be() -> None:
    request = FindCoordinatorRequest(key="x" * 0x7FFF)
    assert decode(FindCoordinatorRequest, 3, encode(request, 3)) == request


def test_a_longer_one_is_refused_as_by_kafka() -> None:
    request = FindCoordinatorRequest(key="x" * 0x8000)
    with pytest.raises(MalformedMessage, match="too long"):
        decode(FindCoordinatorRequest, 3, encode(request, 3))


@pytest.mark.parametrize("version", [0, 5])
def test_a_request_has_a_bounded_number_of_elements(version: int) -> None:
    most = encode(DescribeGroupsRequest(groups=[""] * MAX_ELEMENTS), version)
    assert len(decode(DescribeGroupsRequest, version, most).groups) == MAX_ELEMENTS
    too_many = encode(DescribeGroupsRequest(groups=[""] * (MAX_ELEMENTS + 1)), version)
    with pytest.raises(MalformedMessage, match="groups"):
        decode(DescribeGroupsRequest, version, too_many)


def test_arrays_inside_arrays_count_together() -> None:
    partitions = [ListOffsetsPartition()] * (MAX_ELEMENTS // 4)
    topics = [ListOffsetsTopic(name="t", partitions=partitions)] * 5
    with pytest.raises(MalformedMessage, match="partitions"):
        decode(ListOffsetsRequest, 9, encode(ListOffsetsRequest(topics=topics), 9))


def test_an_answer_may_be_as_large_as_a_cluster_is() -> None:
    groups = [DescribedGroup(group_id="")] * (MAX_ELEMENTS + 1)
    answer = encode(DescribeGroupsResponse(groups=groups), 5)
    assert len(decode(DescribeGroupsResponse, 5, answer).groups) == MAX_ELEMENTS + 1


def test_tagged_fields_count_like_elements() -> None:
    request = encode(DescribeGroupsRequest(groups=[""]), 5)
    assert request[-1] == 0
    section = unsigned_varint(MAX_ELEMENTS) + b"\x63\x00" * MAX_ELEMENTS
    with pytest.raises(MalformedMessage, match="too many tagged fields"):
        decode(DescribeGroupsRequest, 5, request[:-1] + section)
    few = unsigned_varint(1000) + b"\x63\x00" * 1000
    assert decode(DescribeGroupsRequest, 5, request[:-1] + few).groups == [""]


def test_known_tagged_fields_that_are_repeated_count_too() -> None:
    request = encode(FetchRequest(), 12)
    cluster_id = b"\x00\x01\x00"  # tag 0, one byte: null
    section = unsigned_varint(MAX_ELEMENTS + 1) + cluster_id * (MAX_ELEMENTS + 1)
    with pytest.raises(MalformedMessage, match="too many tagged fields"):
        decode(FetchRequest, 12, request[:-1] + section)
