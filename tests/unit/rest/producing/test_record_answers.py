"""Answers to single records."""

import json

import pytest

from headrace.rest import errors
from headrace.rest.payloads.formats import Format
from headrace.rest.payloads.plain import encode
from headrace.rest.producing.producer import NewRecord, Produced
from headrace.rest.producing.record_answers import failure, line, success
from headrace.rest.producing.record_writer import PreparedRecord, Written

PREPARED = PreparedRecord(
    NewRecord("t", None, b"v"), Written(), Written(encode(Format.STRING, b'"v"'), Format.STRING)
)


def test_what_is_not_there_is_left_out() -> None:
    answer = line(success("c", PREPARED, Produced(1, 2, 1_767_225_600_000)))
    assert answer == (
        b'{"error_code":200,"cluster_id":"c","topic_name":"t","partition_id":1,"offset":2,'
        b'"timestamp":"2026-01-01T00:00:00Z","value":{"type":"STRING","size":1}}\r\n'
    )


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_767_225_600_120, "2026-01-01T00:00:00.120Z"),
        (-1, None),
        (10**18, None),
    ],
)
def test_times(milliseconds: int, text: str | None) -> None:
    answer = json.loads(line(success("c", PREPARED, Produced(0, 0, milliseconds))))
    assert answer.get("timestamp") == text


def test_errors_that_cannot_be_processed_have_the_status_as_code() -> None:
    told = failure(errors.serialization_failed("why\nmore"))
    assert (told.error_code, told.message) == (422, "Error: 42207 : Error serializing message. why")
    told = failure(errors.partition_not_found(), entry_id="a")
    assert (told.error_code, told.id) == (40402, "a")
    told = failure(errors.bad_request("x"))
    assert (told.error_code, told.message) == (400, "Bad Request: x")
