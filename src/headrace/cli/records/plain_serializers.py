"""Serializers of keys and values that need no schema: JSON, and what Kafka's own serializers write for a text."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final
from uuid import UUID

import msgspec

from headrace.cli.shell.command_line import Failure

Serializer = Callable[[bytes], bytes]

_NUMBERS: Final = {"short": ">h", "integer": ">i", "long": ">q", "float": ">f", "double": ">d"}
_BOOLEANS: Final = {"true": b"\x01", "false": b"\x00"}


def plain_serializer(name: str) -> Serializer:
    """The serializer of one of `value_format.PLAIN_FORMATS` or json. It raises Failure where a text is no such value."""
    convert = _converter(name)

    def serialize(text: bytes) -> bytes:
        try:
            return convert(text)
        except (KeyError, ValueError, OverflowError, struct.error) as error:
            raise Failure(
                f"'{text.decode(errors='replace')}' is no {name}", why=str(error)
            ) from error

    return serialize


def json_checked(text: bytes) -> bytes:
    """A text that must be JSON. Raises Failure."""
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Failure(f"not JSON: {text.decode(errors='replace')}", why=str(error)) from error
    return text


def _converter(name: str) -> Serializer:
    if name == "json":
        return json_checked
    if name == "boolean":
        return lambda text: _BOOLEANS[text.decode().strip().lower()]
    if name == "uuid":
        return lambda text: str(UUID(text.decode().strip())).encode()
    if name in _NUMBERS:
        form = _NUMBERS[name]
        number: Callable[[str], int | float] = float if name in ("float", "double") else int
        return lambda text: struct.pack(form, number(text.decode()))
    return lambda text: text
