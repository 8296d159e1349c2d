"""What is asked of a schema to write and read keys and values: JSON to bytes and back. Pure."""

from __future__ import annotations

from typing import Any, Protocol

from headrace.errors import HeadraceError
from headrace.schemas.wire_format import Framed

Json = Any


class NotOfSchema(HeadraceError):
    """The JSON text, or the bytes, are not what the schema describes; the message says where."""


class UnusableSchema(HeadraceError):
    """The schema's text cannot be used to read or write; the message says why."""


class SchemaCodec(Protocol):
    """One schema, ready to be used."""

    @property
    def is_blocking(self) -> bool:
        """Whether `encode` waits for another process, so that no event loop may call it."""
        ...

    @property
    def record_name(self) -> str | None:
        """The full name of the type, from which subjects may be made; None where it has no name."""
        ...

    def encode(self, data: bytes) -> bytes:
        """The bytes behind the reference to the schema, for a JSON text. Raises NotOfSchema."""
        ...

    def decode(self, framed: Framed) -> Json:
        """What to write into an answer for bytes of this schema. Raises NotOfSchema."""
        ...
