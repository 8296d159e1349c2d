"""Protobuf's JSON mapping over messages of a compiled file: the first one, nested ones, imports, what does not fit."""

from collections.abc import Mapping

import pytest

from headrace.rest.payloads.protobuf_json import ProtobufCodec
from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from headrace.schemas.formats.protobuf.language import ProtobufFormat, ProtobufSchema
from headrace.schemas.wire_format import Framed

ORDER = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  int64 order_id = 1;
  repeated string tags = 2;
  Item item = 3;
  google.protobuf.Timestamp at = 4;
  bytes raw = 5;
  message Item { string name = 1; message Part { int32 n = 1; } }
}
message Other { bool yes = 1; }
"""


def codec(text: str = ORDER, references: Mapping[str, str] | None = None) -> ProtobufCodec:
    schema = ProtobufFormat().parse(text, references or {})
    assert isinstance(schema, ProtobufSchema)
    return ProtobufCodec(schema.files.values())


def test_the_first_message_is_written_and_default_values_are_shown() -> None:
    used = codec()
    assert used.record_name == "shop.Order"
    written = used.encode(
        b'{"orderId":"5","item":{"name":"x"},"at":"2026-01-02T03:04:05Z","raw":"AQI="}'
    )
    assert written.startswith(b"\x00\x08\x05")
    assert used.decode(Framed(1, written)) == {
        "orderId": "5",
        "tags": [],
        "item": {"name": "x"},
        "at": "2026-01-02T03:04:05Z",
        "raw": "AQI=",
    }
    assert used.encode(b'{"order_id":5}') == b"\x00\x08\x05"


def test_message_indexes_lead_to_other_messages() -> None:
    used = codec()
    assert used.decode(Framed(1, b"\x02\x02\x08\x01")) == {"yes": True}
    assert used.decode(Framed(1, b"\x06\x00\x00\x00\x08\x07")) == {"n": 7}
    with pytest.raises(NotOfSchema, match=r"no message with the indexes \[2\]"):
        used.decode(Framed(1, b"\x02\x04"))


def test_imported_files_are_known() -> None:
    text = 'syntax = "proto3"; import "o.proto"; message M { Other o = 1; }'
    other = 'syntax = "proto3"; message Other { string a = 1; }'
    used = codec(text, {"o.proto": other})
    assert used.decode(Framed(1, used.encode(b'{"o":{"a":"x"}}'))) == {"o": {"a": "x"}}


@pytest.mark.parametrize(
    "data", [b"[]", b'{"nope":1}', b'{"orderId":"x"}', b"{", b"\xff", b"1", b"null"]
)
def test_what_does_not_fit_is_refused(data: bytes) -> None:
    with pytest.raises(NotOfSchema, match="does not fit its Protobuf schema"):
        codec().encode(data)


@pytest.mark.parametrize("payload", [b"", b"\x00\x08", b"\x00\xff\xff", b"\x04\x00"])
def test_bytes_that_are_no_message_are_refused(payload: bytes) -> None:
    with pytest.raises(NotOfSchema, match="do not fit their Protobuf schema"):
        codec().decode(Framed(1, payload))


def test_messages_nested_without_end_are_refused() -> None:
    used = codec('syntax = "proto3"; message L { L l = 1; }')
    payload = b""
    for _ in range(200):
        length = len(payload)
        size = bytes((length & 0x7F | 0x80, length >> 7)) if length > 127 else bytes((length,))
        payload = b"\x0a" + size + payload
    with pytest.raises(NotOfSchema, match="do not fit"):
        used.decode(Framed(1, b"\x00" + payload))
    with pytest.raises(NotOfSchema, match="does not fit"):
        used.encode(b'{"l":' * 5000 + b"{}" + b"}" * 5000)


def test_a_file_without_messages_cannot_be_used() -> None:
    with pytest.raises(UnusableSchema, match="no message"):
        codec('syntax = "proto3"; enum E { A = 0; }')
