"""Counts the error codes of a response message, at its top level and in each of its items (pure)."""

from collections import Counter
from typing import Final, NamedTuple, cast

from headrace.wire.message import Schema

_ERROR_FIELD: Final = "error_code"


class _Places(NamedTuple):
    """Where a message class has error codes: in a field of its own, or within these fields."""

    has_code: bool
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
    if places.has_code:
        codes[getattr(message, _ERROR_FIELD)] += 1
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
        has_code = any(name == _ERROR_FIELD for name, *_ in schema)
        places = _known[message_class] = _Places(has_code, tuple(within))
    return places
