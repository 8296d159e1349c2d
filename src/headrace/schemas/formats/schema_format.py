"""What the registry asks of a schema language: parsing, canonical text, normalised text, compatibility, tags. Pure.

A parsed schema is made for one request and dropped afterwards; nothing in the registry keeps one, so that memory grows
with the stored texts only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from headrace.errors import HeadraceError

MAX_SCHEMA_BYTES = 1024 * 1024
MAX_DEPTH = 100  # of nested types; a deeper schema would exhaust the interpreter's stack
# Kinds of tagged entities.
RECORD: Final = "sr_record"
FIELD: Final = "sr_field"


class InvalidSchema(HeadraceError):
    """The text is not a schema of its language; the message says why."""


class TaggedEntity(msgspec.Struct, frozen=True):
    """A record or a field of a schema, by its path, and the tags that are written at it."""

    path: str
    kind: str  # RECORD or FIELD
    tags: tuple[str, ...]


class Difference(NamedTuple):
    """One reason why data written with `writer` cannot be read with `reader`."""

    kind: str  # Confluent's name of the difference, such as TYPE_MISMATCH
    path: str
    text: str  # with {reader} and {writer} where "new" or "old" belongs
    info: str = ""
    quote: str = "'"  # around the parts of the message; each language has its own
    end: str = ""  # the last quote, where it is another one

    def message(self, *, reader: str, writer: str) -> str:
        """The difference in the form of Confluent's answers."""
        description = self.text.format(reader=reader, writer=writer)
        quote = self.quote
        more = f", additionalInfo:{quote}{self.info}{quote}" if self.info else ""
        end = (self.end or quote) + more
        return f"{{errorType:{quote}{self.kind}{quote}, description:{quote}{description}{end}}}"


class ParsedSchema(Protocol):
    """A schema of some language, ready to be printed and compared."""

    def canonical(self) -> str:
        """The text that is stored: two schemas are the same if these texts, and their references, are equal."""
        ...

    def normalized(self) -> str:
        """A text that is equal for schemas that differ in order or notation only."""
        ...

    def formatted(self, form: str) -> str:
        """The text in a form of the language's own; the canonical text where it has no such form."""
        ...

    def can_read(self, writer: ParsedSchema, *, is_lenient: bool = False) -> list[Difference]:
        """Why data written with `writer` (of the same language) cannot be read with this schema; empty if it can."""
        ...

    def tags(self) -> Sequence[TaggedEntity]:
        """The records and fields that have tags."""
        ...

    def tagged(self, add: Sequence[TaggedEntity], remove: Sequence[TaggedEntity]) -> ParsedSchema:
        """The same schema with other tags. Raises InvalidSchema where a path leads nowhere."""
        ...

    def has_top_level_field(self, name: str) -> bool:
        """Whether the schema's outermost record has a field."""
        ...

    def check_fields(self) -> None:
        """Check the names of fields more strictly than the language does. Raises InvalidSchema."""
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
