"""Records as JSON, and the place of those that cannot be read."""

import pytest

from headrace.rest import errors
from headrace.rest.consumers.progress import ReadRecord
from headrace.rest.consumers.record_answers import RecordDecoder
from headrace.rest.payloads.formats import Format
from headrace.rest.payloads.schema_codec import UnusableSchema
from headrace.rest.schemas.schema_choice import ReadySchema
from headrace.schemas.wire_format import SchemaReference

FRAMED = b"\0\0\0\0\7x"
PLACE = "partition t-3 at offset 12"


def record(value: bytes) -> ReadRecord:
    return ReadRecord("t", 3, 12, None, value)


def unknown(_: SchemaReference) -> ReadySchema:
    raise UnusableSchema("no such schema")


def away(_: SchemaReference) -> ReadySchema:
    raise errors.try_again("the registry is away")


@pytest.mark.parametrize("value", [b"{", b"\xff", b"[" * 5000, b"1" * 5000, b"1e999"])
def test_bytes_that_are_not_json(value: bytes) -> None:
    with pytest.raises(errors.RestError, match=PLACE) as refused:
        RecordDecoder(Format.JSON, None).decode(record(value))
    assert (refused.value.status, refused.value.code) == (500, 50002)


def test_a_schema_that_is_not_known() -> None:
    with pytest.raises(errors.RestError, match=f"{PLACE}.*no such schema") as refused:
        RecordDecoder(Format.AVRO, unknown).decode(record(FRAMED))
    assert (refused.value.status, refused.value.code) == (500, 50002)


def test_a_registry_that_is_away() -> None:
    with pytest.raises(errors.RestError, match=f"away.*{PLACE}") as refused:
        RecordDecoder(Format.AVRO, away).decode(record(FRAMED))
    assert (refused.value.status, refused.value.code) == (500, 50003)
