"""A `.proto` file as its author wrote it: names are not resolved, and comments and layout are gone. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

MAX_TAG: Final = 536_870_911


@dataclass(slots=True)
class Word:
    """A value that stands without quotes: a number, true or false, or a name."""

    text: str


# The value of an option: a string, a word, a list of values, or a message in Protobuf's text format.
Value = str | Word | list["Value"] | dict[str, "Value"]


@dataclass(slots=True)
class Option:
    """An option; `path` are the names behind the dot in `(name).path = value`."""

    name: str
    value: Value
    is_extension: bool = False  # its name stands in parentheses
    path: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Range:
    """Tags from one to another, both included."""

    start: int
    end: int


@dataclass(slots=True)
class Field:
    """A field of a message, a oneof or an extension."""

    label: str | None
    type: str  # of a map: `map<key, value>`
    name: str
    tag: int
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Group:
    """A field whose message is defined with it."""

    label: str | None
    name: str
    tag: int
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class OneOf:
    """Fields of which at most one is set."""

    name: str
    fields: list[Field] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Reserved:
    """Tags and names that no field may have."""

    values: list[int | Range | str]


@dataclass(slots=True)
class Extensions:
    """Tags that extensions may have."""

    values: list[int | Range]
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Extend:
    """Fields that are added to a message of another place."""

    name: str
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class Constant:
    """A name of an enum."""

    name: str
    tag: int
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Enum:
    """An enum."""

    name: str
    constants: list[Constant] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """A message."""

    name: str
    fields: list[Field] = field(default_factory=list)
    oneofs: list[OneOf] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    extensions: list[Extensions] = field(default_factory=list)
    reserved: list[Reserved] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Rpc:
    """A method of a service."""

    name: str
    request: str
    answer: str
    streams_request: bool = False
    streams_answer: bool = False
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class Service:
    """A service."""

    name: str
    rpcs: list[Rpc] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)


@dataclass(slots=True)
class ProtoFile:
    """A file."""

    syntax: str | None = None  # proto2, proto3
    edition: str | None = None
    package: str | None = None
    imports: list[str] = field(default_factory=list)
    public_imports: list[str] = field(default_factory=list)
    weak_imports: list[str] = field(default_factory=list)
    options: list[Option] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    enums: list[Enum] = field(default_factory=list)
    extends: list[Extend] = field(default_factory=list)
    services: list[Service] = field(default_factory=list)
