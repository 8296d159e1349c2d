"""Requests to the controller keep their names on the wire, so that brokers of different releases understand each other."""

import pytest

from headrace.controller.brokers import ControlledShutdown, ElectOfflinePartitions, ShutdownAnswer
from headrace.controller.controller_requests import (
    decode_answer,
    decode_event,
    encode_answer,
    encode_event,
)
from headrace.errors import MalformedMessage


def test_a_controlled_shutdown_has_the_name_and_fields_of_earlier_releases() -> None:
    event = ControlledShutdown(broker_id=3, broker_epoch=70)
    # A msgpack map of two fields, as every release so far has written it.
    data = b"\x82\xa9broker_id\x03\xacbroker_epoch\x46"
    assert encode_event(event) == ("ShutdownWanted", data)
    assert decode_event("ShutdownWanted", data) == event
    answer = ShutdownAnswer()
    assert decode_answer("ShutdownWanted", encode_answer(answer)) == answer


def test_an_election_of_offline_partitions_has_the_name_of_earlier_releases() -> None:
    name, data = encode_event(ElectOfflinePartitions())
    assert (name, data) == ("OfflinePartitionsSeen", b"\x80")
    assert decode_event(name, data) == ElectOfflinePartitions()


@pytest.mark.parametrize("name", ["", "ControlledShutdown", "ElectOfflinePartitions"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(MalformedMessage):
        decode_event(name, b"\x80")
