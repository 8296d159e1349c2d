"""Types of Avro schemas as objects: what the parser makes, and what printing, comparing, decoding and encoding walk. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

PRIMITIVES: Final = frozenset(
    {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
)
# A reader of the key's type can read what a writer of these types wrote.
PROMOTIONS: Final = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
# Attributes that Avro gives a meaning to; all others are kept as they are.
SCHEMA_KEYS: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
FIELD_KEYS: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
NO_DEFAULT: Final = object()

Json = Any  # what a JSON text means


@dataclass(slots=True, eq=False)
class Type:
    """A type in a schema. `kind` is its Avro name; `props` are the attributes that Avro gives no meaning to."""

    kind: str
    props: dict[str, Json] = field(default_factory=dict)
    # Of named types.
    name: str = ""
    namespace: str = ""
    doc: str | None = None
    aliases: list[str] = field(default_factory=list)  # full names
    # Of the kinds that have them.
    fields: list[Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    enum_default: str | None = None
    size: int = 0
    items: Type | None = None  # of an array; the values of a map
    branches: list[Type] = field(default_factory=list)  # of a union

    @property
    def full_name(self) -> str:
        """The name with its namespace."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def element(self) -> Type:
        """What an array or a map holds."""
        assert self.items is not None
        return self.items


@dataclass(slots=True, eq=False)
class Field:
    """A field of a record."""

    name: str
    type: Type
    doc: str | None
    default: Json
    order: str
    aliases: list[str]
    props: dict[str, Json]

    @property
    def has_default(self) -> bool:
        """Whether a reader can do without the field."""
        return self.default is not NO_DEFAULT
