"""Columns of serialised values: rows by schema, references in values and in headers, and whose fault an error is."""

from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.decoded import Decoded, Undecodable
from headrace.schemas.columns.framed_decoder import FramedDecoder
from headrace.schemas.registry_transport import RegistryUnreachable
from headrace.schemas.wire_format import SchemaReference, encode_reference

GUID = UUID(int=7)


class Texts:
    """Reads payloads as text behind the reference; what begins with ! is an error."""

    def __init__(self, reference: SchemaReference) -> None:
        self._reference = reference

    def decode(self, payload: ByteSpans, header_rest: bytes | None = None) -> Decoded:
        texts = [each.decode() for each in payload.column().to_pylist()]
        shown = [
            None if each[:1] == "!" else f"{self._reference}:{each}{(header_rest or b'').decode()}"
            for each in texts
        ]
        errors = {row: "bang" for row, each in enumerate(texts) if each[:1] == "!"}
        return Decoded(pa.array(shown, pa.string()), errors)


def decoder_for(reference: SchemaReference) -> Any:
    if reference == 99:
        raise Undecodable("no schema 99")
    if reference == 98:
        raise RegistryUnreachable("away")
    return Texts(reference)


def decode(values: list[bytes | None], headers: list[bytes | None] | None = None) -> Decoded:
    column = None if headers is None else pa.array(headers, pa.binary())
    return FramedDecoder(pa.string(), decoder_for).decode(pa.array(values, pa.binary()), column)


def framed(reference: SchemaReference, text: str) -> bytes:
    return encode_reference(reference) + text.encode()


def test_rows_of_many_schemas_keep_their_places() -> None:
    rows = [framed(1, "a"), None, framed(2, "b"), framed(1, "c"), framed(GUID, "d"), framed(1, "")]
    found = decode(rows)
    assert found.errors == {}
    assert found.values.to_pylist() == ["1:a", None, "2:b", "1:c", f"{GUID}:d", "1:"]


def test_errors_stay_with_their_rows() -> None:
    rows = [b"", framed(99, "x"), None, b"\x00\x00", framed(1, "!"), b"plain", framed(1, "fine")]
    rows += [b"\x01short", b"\x00\xff\xff\xff\xff"]
    found = decode(rows)
    assert found.values.to_pylist() == [None] * 6 + ["1:fine", None, None]
    assert found.errors == {
        0: "no bytes where a reference to a schema was expected",
        1: "no schema 99",
        3: "2 bytes are too few for a reference to a schema",
        4: "bang",
        5: "unknown magic byte 0x70: no reference to a schema",
        7: "6 bytes are too few for a reference to a schema",
        8: "4294967295 is not a schema id",
    }


def test_headers_beat_what_a_value_begins_with() -> None:
    rows: list[bytes | None] = [framed(1, "a"), framed(1, "b"), b"bare", b"bare", None]
    headers: list[bytes | None] = [None, framed(2, ""), framed(GUID, "+"), b"\x07", framed(2, "")]
    found = decode(rows, headers)
    assert found.values.to_pylist() == ["1:a", "2:\0\0\0\0\x01b", f"{GUID}:bare+", None, None]
    assert found.errors == {3: "schema header: unknown magic byte 0x07: no reference to a schema"}


@pytest.mark.parametrize("in_headers", [False, True])
def test_rows_that_all_refer_to_other_schemas_keep_their_places(*, in_headers: bool) -> None:
    count = 5000
    references = [framed(1000 + number * 7919 % count, "") for number in range(count)]
    values: list[bytes | None] = [b"x"] * count if in_headers else list(references)
    found = decode(values, list(references) if in_headers else None)
    rest = "x" if in_headers else ""
    assert found.values.to_pylist() == [
        f"{1000 + number * 7919 % count}:{rest}" for number in range(count)
    ]


def test_what_is_kept_of_schemas_is_bounded() -> None:
    asked: list[SchemaReference] = []

    def unknown(reference: SchemaReference) -> Any:
        asked.append(reference)
        raise Undecodable("unknown")

    decoder = FramedDecoder(pa.string(), unknown)
    for _ in range(2):
        decoder.decode(pa.array([framed(number, "") for number in range(50)]))
    assert len(asked) == 50
    found = decoder.decode(pa.array([framed(number, "") for number in range(5000)]))
    assert len(found.errors) == 5000
    assert len(decoder._decoders) <= 1000


def test_no_rows_and_only_nulls() -> None:
    assert decode([]).values.to_pylist() == []
    assert decode([None, None]).values.to_pylist() == [None, None]
    assert decode([b"x"]).values.type == pa.string()


def test_a_registry_that_does_not_answer_is_no_fault_of_a_row() -> None:
    with pytest.raises(RegistryUnreachable):
        decode([framed(1, "a"), framed(98, "b")])
