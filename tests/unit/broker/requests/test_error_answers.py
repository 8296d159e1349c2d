"""A whole request that is refused, for every API and version: what was asked for is found again in the answer, with the error."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from headrace.broker import api_table
from headrace.broker.requests.answer_errors import error_codes
from headrace.broker.requests.error_answers import error_answer
from headrace.errors import MalformedMessage
from headrace.wire.api_keys import ApiKey, request_class, response_class
from headrace.wire.codec import decode, encode
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.messages.produce import ProduceRequest

REFUSED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
# Their answers have no room for an error in these versions.
WITHOUT_ERRORS = {ApiKey.DESCRIBE_LOG_DIRS: range(1, 3)}
VALUES: dict[str, Any] = {"string": "name", "uuid": UUID(int=7), "bool": True, "bytes": b"bytes"}


def sample(message: Any, version: int) -> Any:
    """A message with two elements in each array, and something in every field."""
    values = {}
    for name, kind, first, last, *_ in message.SCHEMA:
        if first <= version <= last:
            values[name] = (
                [_element(kind[0], version)] * 2
                if isinstance(kind, tuple)
                else _element(kind, version)
            )
    return message(**values)


def _element(kind: Any, version: int) -> Any:
    if isinstance(kind, type):
        return sample(kind, version)
    return b"" if kind == "records" else VALUES.get(kind, 1)


def all_versions() -> Iterator[tuple[ApiKey, int]]:
    for key in (*api_table.APIS, *api_table.INTERNAL_APIS):
        first, last = api_table.versions(key)
        for version in range(first, last + 1):
            yield key, version


@pytest.mark.parametrize(("key", "version"), list(all_versions()))
def test_every_api_has_an_answer_that_says_nothing_but_the_error(key: ApiKey, version: int) -> None:
    request = sample(request_class(key), version)
    answer = error_answer(key, version, request, REFUSED)
    read = decode(response_class(key), version, bytearray(encode(answer, version)))
    codes = error_codes(read)
    if version in WITHOUT_ERRORS.get(key, ()):
        assert not codes[REFUSED]
    else:
        # A field that is not on the wire in this version reads as 0.
        assert codes[REFUSED] >= 1
        assert set(codes) <= {0, REFUSED}


@pytest.mark.parametrize(
    ("key", "version", "places"),
    [
        (ApiKey.PRODUCE, 9, [("name", 1)] * 4),
        (ApiKey.FETCH, 12, [("name", 1)] * 4),
        (ApiKey.LIST_OFFSETS, 7, [("name", 1)] * 4),
        (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, [("name", 1)] * 4),
        (ApiKey.ALTER_REPLICA_LOG_DIRS, 2, [("name", 1)] * 8),
        (ApiKey.ELECT_LEADERS, 2, [("name", 1)] * 4),
        (ApiKey.DESCRIBE_PRODUCERS, 0, [("name", 1)] * 4),
        (ApiKey.DESCRIBE_GROUPS, 5, [("name",)] * 2),
        (ApiKey.DELETE_TOPICS, 5, [("name",)] * 2),
        (ApiKey.DELETE_GROUPS, 2, [("name",)] * 2),
        (ApiKey.FIND_COORDINATOR, 4, [("name",)] * 2),
        (ApiKey.OFFSET_FETCH, 1, [("name", 1)] * 4),
        (ApiKey.OFFSET_FETCH, 8, [("name",)] * 2),
        (ApiKey.DESCRIBE_CONFIGS, 4, [("name", 1)] * 2),
    ],
)
def test_items_have_the_names_that_were_asked_for(
    key: ApiKey, version: int, places: list[tuple[object, ...]]
) -> None:
    answer = error_answer(key, version, sample(request_class(key), version), REFUSED)
    assert list(_places(answer)) == places


def _places(message: Any, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The identifying fields of every item with an error, from the outside to the inside."""
    keys = ("name", "topic", "topic_name", "group_id", "key", "resource_name", "resource_type")
    numbers = ("index", "partition_index", "partition", "partition_id")
    fields = [name for name in (*keys, *numbers) if name in type(message).__slots__]
    path = (*path, *(getattr(message, name) for name in fields))
    if path and "error_code" in type(message).__slots__:
        yield path
    for name, kind, *_ in message.SCHEMA:
        if isinstance(kind, tuple) and isinstance(kind[0], type):
            for element in getattr(message, name):
                yield from _places(element, path)


def test_what_was_asked_for_by_null_has_no_items() -> None:
    answer: Any = error_answer(ApiKey.METADATA, 13, MetadataRequest(topics=None), REFUSED)
    assert (answer.error_code, answer.topics) == (REFUSED, [])


def test_a_produce_that_gets_no_answer_is_told_by_closing() -> None:
    with pytest.raises(MalformedMessage):
        error_answer(ApiKey.PRODUCE, 9, ProduceRequest(acks=0), REFUSED)
