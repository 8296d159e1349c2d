"""Fields of produce requests that exclude each other, and times of records."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from headrace.rest.errors import RestError
from headrace.rest.payloads.formats import Format
from headrace.rest.producing.produce_forms import (
    BatchForm,
    DataForm,
    RecordForm,
    V2ProduceForm,
    timestamp_ms,
)
from headrace.rest.schemas.schema_selector import SubjectStrategy


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"type": Format.JSON},
        {"type": Format.AVRO, "schema": "s"},
        {"type": Format.AVRO, "schema": "s", "subject": "x"},
        {"schema_id": 1},
        {"schema_id": 1, "subject_name_strategy": SubjectStrategy.RECORD_NAME},
        {"schema_version": 1, "subject": "x"},
        {"subject": "x"},
    ],
)
def test_fields_that_go_together(fields: dict[str, Any]) -> None:
    DataForm(**fields).check()


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"type": Format.BINARY, "schema": "s"}, "'type=BINARY' cannot be used with 'schema'."),
        ({"type": Format.STRING, "subject": "s"}, "'type=STRING' cannot be used with 'subject'."),
        (
            {"type": Format.JSON, "subject_name_strategy": SubjectStrategy.TOPIC_NAME},
            "'type=JSON' cannot be used with 'subject_strategy'.",
        ),
        ({"type": Format.AVRO}, "'schema_version=latest' cannot be used with 'serializer'."),
        (
            {"type": Format.AVRO, "schema_id": 1},
            "'schema_id=1' cannot be used with 'serializer'.",
        ),
        (
            {"type": Format.PROTOBUF, "schema_version": 2},
            "'schema_version=2' cannot be used with 'serializer'.",
        ),
        (
            {"schema": "s", "schema_id": 1},
            "Only one of 'schema_id', 'schema_version' or 'schema' can be used.",
        ),
        (
            {"subject": "s", "subject_name_strategy": SubjectStrategy.TOPIC_NAME},
            "Only one of 'subject_name_strategy' or 'subject' can be used.",
        ),
    ],
)
def test_fields_that_exclude_each_other(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(RestError) as refused:
        DataForm(**fields).check()
    assert refused.value.message == (
        f"Cannot construct instance of `ProduceRequestData`, problem: {problem}"
    )


def test_data_stay_as_they_were_written() -> None:
    form = msgspec.json.decode(
        b'{"value":{"type":"JSON","data":{"n": 12345678901234567890123}}}', type=RecordForm
    )
    assert form.value is not None
    assert bytes(form.value.data) == b'{"n": 12345678901234567890123}'
    assert form.value.selector("t", is_key=False).format is Format.JSON


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (None, 0),
        (datetime(2026, 1, 1, tzinfo=UTC), 1_767_225_600_000),
        (1_767_225_600, 1_767_225_600_000),
        (1.5, 1500),
        (0, 1),
    ],
)
def test_times(timestamp: Any, expected: int) -> None:
    assert timestamp_ms(timestamp) == expected


@pytest.mark.parametrize("timestamp", [-1, 1e300, 10**30, float("nan"), float("inf")])
def test_times_that_are_none(timestamp: float) -> None:
    with pytest.raises(RestError, match="not a time of a record"):
        timestamp_ms(timestamp)


def test_schemas_of_version_2() -> None:
    form = V2ProduceForm(value_schema="s", key_schema_id=3)
    value = form.selector("t", Format.AVRO, is_key=False)
    key = form.selector("t", Format.AVRO, is_key=True)
    assert value is not None
    assert key is not None
    assert (value.text, value.format) == ("s", Format.AVRO)
    assert (key.schema_id, key.format, key.is_key) == (3, None, True)
    assert V2ProduceForm().selector("t", Format.AVRO, is_key=True) is None


def test_a_batch_needs_distinct_ids() -> None:
    decode = msgspec.json.Decoder(BatchForm).decode
    assert len(decode(b'{"entries":[{"id":"a"},{"id":"b"}]}').checked(2)) == 2
    with pytest.raises(RestError, match="Too many"):
        decode(b'{"entries":[{"id":"a"},{"id":"b"}]}').checked(1)
    with pytest.raises(RestError, match="not a valid string"):
        decode(b'{"entries":[{"id":"' + b"x" * 81 + b'"}]}').checked(1)
