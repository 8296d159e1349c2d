"""Formats without a schema: BINARY (base64), JSON, STRING. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import msgspec

from headrace.rest import errors
from headrace.rest.payloads.formats import Format

Json = Any

_SHOWN_CHARACTERS = 100
# Jackson, which most of Kafka's JSON is read with, refuses longer ones. Python refuses integers of more than 4,300 digits.
_NUMBER_CHARACTERS = 1000
# Both look at each character once, however the text was made.
_LONG_NUMBER = re.compile(rb"(?<![0-9.eE+-])[0-9.eE+-]{%d}" % (_NUMBER_CHARACTERS + 1))
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')


def encode(kind: Format, data: bytes) -> bytes | None:
    """The bytes of a record that a JSON text means; None for `null`. Raises RestError."""
    if data == b"null":
        return None
    if kind is Format.JSON:
        return compact(data)
    text = _text(kind, data)
    if kind is Format.STRING:
        return text.encode()
    try:
        padding = "=" * (-len(text) % 4)
        return binascii.a2b_base64(text + padding, strict_mode=True)
    except ValueError:
        raise errors.bad_request(f"data={_shown(data)} is not a valid base64 string.") from None


def compact(data: bytes) -> bytes:
    """A JSON text without the white space between its tokens. Raises RestError where it could not be read back."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as wrong:
            raise errors.bad_request(f"the JSON text is not UTF-8: {wrong.reason}") from None
    if _has_long_number(data):
        raise errors.bad_request(f"a number is longer than {_NUMBER_CHARACTERS} characters.")
    try:
        msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise errors.bad_request(f"the JSON text cannot be read: {wrong}") from None
    return msgspec.json.format(data, indent=-1)


def _has_long_number(data: bytes) -> bool:
    if len(data) <= _NUMBER_CHARACTERS or not _LONG_NUMBER.search(data):
        return False
    return bool(_LONG_NUMBER.search(_STRING.sub(b"", data)))  # digits in a string are no number


def decode(kind: Format, data: bytes | None) -> Json:
    """What to write into an answer for the bytes of a record. Raises ValueError where they are not JSON."""
    if data is None:
        return None
    if kind is Format.JSON:
        msgspec.json.decode(data)
        return msgspec.Raw(data)
    if kind is Format.STRING:
        return data.decode()
    return base64.b64encode(data).decode()


def _text(kind: Format, data: bytes) -> str:
    try:
        return msgspec.json.decode(data, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        what = "a string" if kind is Format.STRING else "a base64 string"
        raise errors.bad_request(f"data={_shown(data)} is not {what}.") from None


def _shown(data: bytes) -> str:
    text = data.decode(errors="replace")
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
