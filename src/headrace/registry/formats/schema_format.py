"""What the registry asks of a schema language: parsing, canonical text, normalised text, compatibility. Pure.

A parsed schema is made for one request and dropped afterwards; nothing in the registry keeps one, so that memory grows
with the stored texts only.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from headrace.errors import HeadraceError

MAX_SCHEMA_BYTES = 1024 * 1024
MAX_DEPTH = 100  # of nested types; a deeper schema would exhaust the interpreter's stack


class InvalidSchema(HeadraceError):
    """The text is not a schema of its language; the message says why."""


class SchemaTooLarge(InvalidSchema):
    """The text, or a text that it refers to, is longer than the registry accepts."""


class Difference(NamedTuple):
    """One reason why data written with `writer` cannot be read with `reader`."""

    kind: str  # Confluent's name of the difference, such as TYPE_MISMATCH
    path: str
    text: str  # with {reader} and {writer} where "new" or "old" belongs
    info: str = ""

    def message(self, *, reader: str, writer: str) -> str:
        """The difference in the form of Confluent's answers."""
        description = self.text.format(reader=reader, writer=writer)
        more = f", additionalInfo:'{self.info}'" if self.info else ""
        return f"{{errorType:'{self.kind}', description:'{description}'{more}}}"


class ParsedSchema(Protocol):
    """A schema of some language, ready to be printed and compared."""

    def canonical(self) -> str:
        """The text that is stored: two schemas are the same if these texts, and their references, are equal."""
        ...

    def normalized(self) -> str:
        """A text that is equal for schemas that differ in order or notation only."""
        ...

    def can_read(self, writer: "ParsedSchema") -> list[Difference]:
        """Why data written with `writer` (of the same language) cannot be read with this schema; empty if it can."""
        ...


class SchemaFormat(Protocol):
    """One schema language."""

    def parse(
        self, text: str, references: Mapping[str, str], *, is_new: bool = True
    ) -> ParsedSchema:
        """Parse `text`, whose references have these texts by name, in the order in which they must be known.

        A schema that `is_new` is checked more strictly than one that has been stored. Raises InvalidSchema.
        """
        ...
