"""The message classes: they are what the generator writes, and they behave as values."""

from uuid import UUID

import pytest

from headrace.wire.api_keys import FLEXIBLE_FROM, ApiKey, request_class, response_class
from headrace.wire.message import NO_UUID
from headrace.wire.messages.fetch import LeaderIdAndEpoch, PartitionData
from headrace.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from headrace.wire.messages.offset_commit import OffsetCommitRequest
from tools.generate_messages import TARGET, render_all


def test_the_checked_in_messages_are_the_generated_ones() -> None:
    on_disk = {path.name: path.read_text() for path in TARGET.glob("*.py")}
    assert on_disk == render_all(), "run: python -m tools.generate_messages"


def test_every_api_has_a_request_that_knows_its_response() -> None:
    for api in ApiKey:
        request = request_class(api)
        assert request.API_KEY == response_class(api).API_KEY == api
        assert request().RESPONSE is response_class(api)
        assert request.VERSIONS == response_class(api).VERSIONS


KAFKAS = [api for api in ApiKey if api < ApiKey.PULL_CHANGES]


def test_the_table_of_flexible_versions_is_that_of_the_messages() -> None:
    said = {api: request_class(api).FLEXIBLE_FROM for api in KAFKAS}
    assert {api: first for api, first in said.items() if first is not None} == FLEXIBLE_FROM
    assert [api for api, first in said.items() if first is None] == [
        ApiKey.SASL_HANDSHAKE,
        ApiKey.OFFSET_DELETE,
    ]


def test_the_versions_are_those_of_kafka_4_3() -> None:
    assert request_class(ApiKey.PRODUCE).VERSIONS == (3, 13)
    assert request_class(ApiKey.FETCH).VERSIONS == (4, 18)
    assert request_class(ApiKey.API_VERSIONS).VERSIONS == (0, 4)
    assert len(KAFKAS) == 89


def test_fields_left_out_have_kafkas_defaults() -> None:
    request = OffsetCommitRequest(group_id="g")
    assert request.generation_id_or_member_epoch == -1
    assert request.retention_time_ms == -1
    assert request.group_instance_id is None
    assert PartitionData().current_leader is None
    assert PartitionData().records == b""
    assert MetadataRequestTopic().topic_id is NO_UUID


def test_equality_is_by_class_and_field() -> None:
    assert MetadataRequest(topics=[]) == MetadataRequest(topics=())
    assert MetadataRequest(topics=None) != MetadataRequest(topics=())
    assert MetadataRequest(topics=[MetadataRequestTopic(name="a")]) != MetadataRequest(
        topics=[MetadataRequestTopic(name="b")]
    )
    assert LeaderIdAndEpoch() != PartitionData()


def test_a_message_shows_its_fields() -> None:
    shown = repr(MetadataRequestTopic(name="a", topic_id=UUID(int=1)))
    assert shown == (
        "MetadataRequestTopic(topic_id=UUID('00000000-0000-0000-0000-000000000001'), name='a')"
    )


def test_a_message_takes_no_unknown_field() -> None:
    with pytest.raises(TypeError):
        MetadataRequest(topic="a")  # type: ignore[call-arg]  # this is the point
    with pytest.raises(AttributeError):
        MetadataRequest().topic = "a"  # type: ignore[attr-defined]  # this is the point
