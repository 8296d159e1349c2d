"""What a client accepts, and what a body is."""

import pytest

from headrace.rest.media_types import (
    RECORD_ANSWERS,
    RECORD_TYPES,
    V2,
    V2_ANSWERS,
    accepted,
    charset_is_supported,
    essence,
)
from headrace.rest.payloads.formats import Format

BINARY = "application/vnd.kafka.binary.v2+json"
AVRO = "application/vnd.kafka.avro.v2+json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", V2),
        ("*/*", V2),
        ("application/*", V2),
        ("application/json", "application/json"),
        (f"{AVRO}, {V2};q=0.5", AVRO),
        (f"{AVRO};q=0.1, {V2};q=0.5", V2),
        (f"*/*;q=0.1, {AVRO}", AVRO),
        (f"{V2};q=0, */*", "application/json"),
        (f"{V2};q=x", None),
        ("text/html", None),
        ("text/html, */*;q=0", None),
    ],
)
def test_negotiation(accept: str, expected: str | None) -> None:
    assert accepted(accept, V2_ANSWERS) == expected


@pytest.mark.parametrize(
    ("accept", "expected"),
    [("*/*", Format.BINARY), (V2, Format.BINARY), (AVRO, Format.AVRO), ("application/json", None)],
)
def test_the_format_that_a_reader_expects(accept: str, expected: Format | None) -> None:
    found = accepted(accept, tuple(RECORD_ANSWERS))
    assert found is not None
    assert RECORD_ANSWERS[found] is expected


def test_every_format_but_text_has_a_media_type() -> None:
    assert set(RECORD_TYPES.values()) == set(Format) - {Format.STRING}
    assert RECORD_TYPES[BINARY] is Format.BINARY


def test_parameters_of_a_media_type() -> None:
    assert essence("Application/JSON; charset=utf-8") == "application/json"
    assert charset_is_supported('application/json; charset="UTF-8"')
    assert charset_is_supported("application/json; q=1; charset=iso-8859-1")
    assert not charset_is_supported("application/json; charset=utf-16")
