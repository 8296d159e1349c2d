"""Random messages of any class and version, from a seed; and the list of all message classes."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any
from uuid import UUID

from headrace.wire import messages
from headrace.wire.message import Message
from headrace.wire.schema import FieldSchema, fields_at

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
LETTERS = "abcxyz-._0159äß€𝄞"


@cache
def all_messages() -> list[type[Message]]:
    found: list[type[Message]] = []
    for module in iter_modules(messages.__path__):
        values = vars(import_module(f"headrace.wire.messages.{module.name}")).values()
        found += [one for one in values if isinstance(one, type) and hasattr(one, "VERSIONS")]
    return found


def all_versions() -> list[tuple[type[Message], int]]:
    return [
        (cls, version)
        for cls in all_messages()
        for version in range(cls.VERSIONS[0], cls.VERSIONS[1] + 1)
    ]


def random_message(cls: Any, version: int, random: Random) -> Any:
    """Fields that the version has are random, often at their default; the others are at theirs."""
    return cls(
        **{
            field.name: _value(field, version, random)
            for field in fields_at(cls, version)
            if field.is_present and random.random() < 0.8
        }
    )


def _value(field: FieldSchema, version: int, random: Random) -> Any:
    if field.is_nullable and random.random() < 0.3:
        return None
    if field.is_array:
        return [_element(field, version, random) for _ in range(random.choice((0, 1, 2, 9)))]
    return _element(field, version, random)


def _element(field: FieldSchema, version: int, random: Random) -> Any:
    if field.is_struct:
        return random_message(field.type, version, random)
    match field.type:
        case "bool":
            return random.random() < 0.5
        case "float64":
            return random.uniform(-1e9, 1e9)
        case "string":
            return "".join(random.choices(LETTERS, k=random.choice((0, 1, 7, 40, 200))))
        case "bytes" | "records":
            return random.randbytes(random.choice((0, 1, 126, 127, 128, 300)))
        case "uuid":
            return UUID(bytes=random.randbytes(16))
        case _:
            return _number(field, random)


def _number(field: FieldSchema, random: Random) -> int:
    if field.name.endswith("_ms"):
        return random.getrandbits(31)  # times that kio can express too
    if "error_code" in field.name:
        return random.randrange(-1, 120)
    if field.type.startswith("u"):
        return random.getrandbits(int(field.type[4:]))
    bits = BITS[field.type]
    return random.choice(
        (0, 1, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), random.getrandbits(bits - 1))
    )
