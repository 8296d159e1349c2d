"""Finding a place in a log by time, and reading records at the limits of size, with every client."""

import re

import pytest

from tests.conformance.clients.client import Client, Refused
from tests.conformance.clients.confluent import Confluent
from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import BASE_TIMESTAMP_MS, HOUR_MS, Record

MAX_MESSAGE_BYTES = 10_000
# 61 for the batch, 12 for the record around a value of this size, 1 for its key.
LARGEST_VALUE_BYTES = MAX_MESSAGE_BYTES - 73


def test_offsets_are_found_by_time(address: str, make_topic: MakeTopic, client: Client) -> None:
    # The records are older than the default retention.
    topic = make_topic("by-time", config={"retention.ms": "-1"})
    hours = (
        0,
        1,
        3,
        2,
        5,
    )  # producers' clocks disagree: the first record at or after a time counts
    for hour in hours:
        record = Record(value=b"at %d" % hour, timestamp_ms=BASE_TIMESTAMP_MS + hour * HOUR_MS)
        Confluent().produce(address, topic, 0, [record], codec="none")
    expected = {-1: 0, 0: 0, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: None}
    found = {
        hour: client.offset_for_time(address, topic, 0, BASE_TIMESTAMP_MS + hour * HOUR_MS)
        for hour in expected
    }
    assert found == expected


def test_the_largest_record_is_taken_and_one_byte_more_is_not(
    address: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic("limited", config={"max.message.bytes": str(MAX_MESSAGE_BYTES)})
    largest = Record(key=b"k", value=b"v" * LARGEST_VALUE_BYTES)
    too_large = Record(key=b"k", value=b"v" * (LARGEST_VALUE_BYTES + 1))
    client.produce(address, topic, 0, [largest], codec="none")
    with pytest.raises(Refused) as refused:
        client.produce(address, topic, 0, [too_large], codec="none")
    assert "toolarge" in re.sub(r"[^a-z]", "", str(refused.value).lower())
    [found] = client.consume(address, topic, 1)
    assert found.record.value == largest.value


def test_a_record_larger_than_every_fetch_limit_is_still_read(
    address: str, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic("huge", config={"max.message.bytes": str(8 << 20)})
    huge = Record(key=b"k", value=bytes(5 << 20))
    Confluent().produce(address, topic, 0, [huge], codec="none")
    [found] = client.consume(address, topic, 1)
    assert found.record.value == huge.value
