"""Counts the error codes of a response message, at its top level and in each of its items (pure)."""

from collections import Counter
from typing import Final, NamedTuple, cast

from headrace.wire.message import Schema

ERROR_FIELDS: Final = frozenset({"error_code", "partition_error_code"})
"""Names of the fields that hold an error. AddPartitionsToTxn has a name of its own."""


class _Places(NamedTuple):
    """Where a message class has error codes: in a field of its own, or within these fields."""

    code_field: str | None
    within: tuple[
        tuple[str, bool, "_Places"], ...
    ]  # name, whether it is an array, and what is there


_known: dict[type, _Places] = {}


def error_codes(answer: object) -> Counter[int]:
    """How often each code is in an answer, 0 included."""
    codes: Counter[int] = Counter()
    _count(answer, _places(type(answer)), codes)
    return codes


def _count(message: object, places: _Places, codes: Counter[int]) -> None:
    if places.code_field is not None:
        codes[getattr(message, places.code_field)] += 1
    for name, is_array, inner in places.within:
        value = getattr(message, name)
        if value is not None:
            for each in value if is_array else (value,):
                _count(each, inner, codes)


def _places(message_class: type) -> _Places:
    places = _known.get(message_class)
    if places is None:
        schema = cast(Schema, message_class.SCHEMA)  # type: ignore[attr-defined]  # every message class has one
        within: list[tuple[str, bool, _Places]] = []
        for name, kind, *_ in schema:
            is_array = isinstance(kind, tuple)
            inner = kind[0] if isinstance(kind, tuple) else kind
            if isinstance(inner, type) and any(found := _places(inner)):
                within.append((cast(str, name), is_array, found))
        code_field = next((str(name) for name, *_ in schema if name in ERROR_FIELDS), None)
        places = _known[message_class] = _Places(code_field, tuple(within))
    return places
