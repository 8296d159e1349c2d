"""One JSON text as a value of a wanted type, by the rules of Spark's `from_json` in mode FAILFAST, or of JSON Schema. Pure.

The slow way for texts that Arrow's reader refuses or reads differently: names that stand twice (the last one counts), single quotes,
NaN and infinities, numbers and objects where text is wanted, base64, odd forms of times. What differs from Spark on purpose is
in docs/pipelines.md.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from enum import Enum
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.json import times as json_times

Convert = Callable[[Any], Any]

_INTEGERS: Final = {
    pa.int8(): (-(2**7), 2**8 - 1),  # Spark takes 128 to 255 for bytes without a sign
    pa.int16(): (-(2**15), 2**15 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
}
_WORDS: Final = {
    "NaN": float("nan"),
    "+INF": float("inf"),
    "+Infinity": float("inf"),
    "Infinity": float("inf"),
    "-INF": float("-inf"),
    "-Infinity": float("-inf"),
}
_DECIMAL: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
_MOST_DIGITS: Final = 20  # of a whole number of 64 bits, with its sign
_MANY_DIGITS: Final = Context(prec=1000)
_BASE64: Final = r"[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}=="
_BASE64_GROUPS: Final = re.compile(rf"(?:[\x00-\x20]*(?:{_BASE64}))*[\x00-\x20]*")
_BASE64_GROUP: Final = re.compile(_BASE64)
# Quotes of either kind, so that nothing inside is taken for a token, and tokens that json does not know.
_LENIENT: Final = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[+-]INF\b|\+Infinity\b', re.DOTALL
)
_SPACE: Final = b" \t\r\n"
_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_ESCAPED: Final = re.compile(r'["\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')


class JsonRules(Enum):
    """What differs between the two readers of JSON."""

    SPARK = "1.0 is not an integer; half of a surrogate pair becomes a question mark, as in Java"
    JSON_SCHEMA = "1.0 is an integer; text with half of a surrogate pair is refused"


class _Object(list[tuple[str, Any]]):
    """Names and values in their order, also those that stand twice."""


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


class JsonReader:
    """Reads texts as values of one type that `pyarrow.array` takes."""

    def __init__(self, wanted: pa.DataType, rules: JsonRules = JsonRules.SPARK) -> None:
        self._convert = _converter(wanted, rules)
        self._wants_object = pt.is_struct(wanted)

    def read(self, text: bytes) -> Any:
        """Raises ValueError with what is wrong."""
        try:
            if self._wants_object and text.lstrip(_SPACE)[:1] != b"{":
                raise ValueError("not an object")
            tree = _tree(text.decode())
            if self._wants_object and not isinstance(tree, _Object):
                raise ValueError("not an object")
            return self._convert(tree)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def _tree(text: str) -> Any:
    try:
        return _loads(text)
    except ValueError:
        lenient = _LENIENT.sub(_strict_token, text)
        if lenient == text:
            raise
        return _loads(lenient)


def _loads(text: str) -> Any:
    return json.loads(
        text,
        object_pairs_hook=_Object,
        parse_int=_Number,
        parse_float=_Number,
        parse_constant=_Number,
    )


def _strict_token(found: re.Match[str]) -> str:
    token = found[0]
    if token[0] == '"':
        return token.replace("\\'", "'") if "\\'" in token else token
    if token[0] == "'":
        inside = re.sub(
            r'\\.|"', lambda part: {"\\'": "'", '"': '\\"'}.get(part[0], part[0]), token[1:-1]
        )
        return f'"{inside}"'
    return "-Infinity" if token[0] == "-" else "Infinity"


def _converter(wanted: pa.DataType, rules: JsonRules) -> Convert:
    """What makes a node of the tree a value of the type; None stays None."""
    convert = _plain_converter(wanted, rules)

    def nullable(node: Any) -> Any:
        return None if node is None else convert(node)

    return nullable


def _plain_converter(wanted: pa.DataType, rules: JsonRules) -> Convert:  # noqa: C901, PLR0911 - one line per type
    if pt.is_struct(wanted):
        return _struct(wanted, rules)
    if pt.is_map(wanted):
        return _map(wanted, rules)
    if pt.is_list(wanted):
        return _list(wanted, rules)
    if wanted in _INTEGERS:
        return _integer(wanted, rules)
    if pt.is_floating(wanted):
        return _float
    if pt.is_decimal(wanted):
        return _decimal(wanted)
    if pt.is_boolean(wanted):
        return _boolean
    if pt.is_string(wanted):
        return _string(rules)
    if pt.is_binary(wanted):
        return lambda node: decode_base64(_text_of(node, "base64"))
    if pt.is_date(wanted):
        return lambda node: json_times.days(_text_of(node, "a date"))
    assert pt.is_timestamp(wanted), f"check_type lets {wanted} through"
    return _timestamp(with_zone=wanted.tz is not None)


def _wrong(node: Any, wanted: str) -> ValueError:
    return ValueError(f"{_shown(node)} is not {wanted}")


def _struct(wanted: pa.DataType, rules: JsonRules) -> Convert:
    fields = [wanted.field(number) for number in range(wanted.num_fields)]
    converters = {each.name: _converter(each.type, rules) for each in fields}

    def convert(node: Any) -> dict[str, Any]:
        if not isinstance(node, _Object):
            raise _wrong(node, "an object")
        row: dict[str, Any] = {}
        for name, value in node:
            converter = converters.get(name)
            if converter is not None:
                try:
                    row[name] = converter(value)
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from error
        return row

    return convert


def _map(wanted: pa.DataType, rules: JsonRules) -> Convert:
    convert_name, convert_value = _text(rules), _converter(wanted.item_type, rules)

    def convert(node: Any) -> list[tuple[str, Any]]:
        if not isinstance(node, _Object):
            raise _wrong(node, "an object")
        return list({convert_name(name): convert_value(value) for name, value in node}.items())

    return convert


def _list(wanted: pa.DataType, rules: JsonRules) -> Convert:
    convert_element = _converter(wanted.value_type, rules)

    def convert(node: Any) -> list[Any]:
        if not isinstance(node, list) or isinstance(node, _Object):
            raise _wrong(node, "an array")
        return [convert_element(each) for each in node]

    return convert


def _integer(wanted: pa.DataType, rules: JsonRules) -> Convert:
    lowest, highest = _INTEGERS[wanted]
    whole = _whole_by_value if rules is JsonRules.JSON_SCHEMA else _whole_by_form

    def convert(node: Any) -> int:
        number = whole(node)
        if number is None or not lowest <= number <= highest:
            raise _wrong(node, f"a whole number of the type {wanted}")
        return number - 2**8 if wanted == pa.int8() and number >= 2**7 else number

    return convert


def _whole_by_form(node: Any) -> int | None:
    """A number without a fraction and an exponent, if it is not much larger than any type allows."""
    return int(node) if _is_whole(node) and len(node) <= _MOST_DIGITS else None


def _whole_by_value(node: Any) -> int | None:
    """A number whose fraction is zero: 1.0 and 1e2, too."""
    found = _whole_by_form(node)
    if found is not None or not isinstance(node, _Number) or not _DECIMAL.fullmatch(node):
        return found
    number = Decimal(node)
    if not number:
        return 0
    is_far_off = not 0 <= number.adjusted() < _MOST_DIGITS
    return None if is_far_off or number != int(number) else int(number)


def _is_whole(node: Any) -> bool:
    return isinstance(node, _Number) and node.lstrip("-").isdecimal()


def _float(node: Any) -> float:
    if isinstance(node, str) and node in _WORDS:
        return _WORDS[node]
    if not isinstance(node, _Number):
        raise _wrong(node, "a number")
    return 0.0 if node == "-0" else float(node)


def _decimal(wanted: pa.DataType) -> Convert:
    precision, scale = wanted.precision, wanted.scale

    def convert(node: Any) -> Decimal:
        if not isinstance(node, str) or not _DECIMAL.fullmatch(node):
            raise _wrong(node, "a decimal number")
        number = _MANY_DIGITS.create_decimal(node)
        if number.adjusted() > precision:
            raise _wrong(node, f"a number of the type {wanted}")
        number = number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _MANY_DIGITS)
        if number and len(number.as_tuple().digits) > precision:
            raise _wrong(node, f"a number of the type {wanted}")
        return number

    return convert


def _boolean(node: Any) -> bool:
    if not isinstance(node, bool):
        raise _wrong(node, "true or false")
    return node


def _text_of(node: Any, wanted: str) -> str:
    if not isinstance(node, str) or isinstance(node, _Number):
        raise _wrong(node, wanted)
    return node


def _timestamp(*, with_zone: bool) -> Convert:
    def convert(node: Any) -> int:
        if with_zone and _is_whole(node):
            seconds = int(node) if len(node) <= 20 else 2**63
            if not -(2**63) <= seconds < 2**63:
                raise _wrong(node, "a number of seconds")
            return (seconds * 1_000_000 + 2**63) % 2**64 - 2**63  # as Java multiplies
        return json_times.microseconds(_text_of(node, "a timestamp"), with_zone=with_zone)

    return convert


def decode_base64(text: str) -> bytes:
    """Base64 with its padding; space may stand between groups of four. Raises ValueError."""
    if not _BASE64_GROUPS.fullmatch(text):
        raise ValueError(f"'{text}' is not base64")
    return b"".join(binascii.a2b_base64(each) for each in _BASE64_GROUP.findall(text))


def _string(rules: JsonRules) -> Convert:
    """Text as it is; anything else as JSON, written the way Spark writes it."""
    text = _text(rules)

    def convert(node: Any) -> str:
        is_text = isinstance(node, str) and not isinstance(node, _Number)
        return text(node) if is_text else _shown(node)

    return convert


def _text(rules: JsonRules) -> Callable[[str], str]:
    return _checked_text if rules is JsonRules.JSON_SCHEMA else _well_formed


def _well_formed(text: str) -> str:
    """Java puts a question mark for half of a surrogate pair."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _checked_text(text: str) -> str:
    if _SURROGATE.search(text):
        raise ValueError(f"{_shown(text)} has half of a surrogate pair, which is no character")
    return text


def _shown(node: Any) -> str:
    match node:
        case None:
            return "null"
        case bool():
            return "true" if node else "false"
        case _Number():
            return _shown_number(node)
        case str():
            return '"' + _ESCAPED.sub(_escape, node) + '"'
        case _Object():
            return "{" + ",".join(f"{_shown(name)}:{_shown(value)}" for name, value in node) + "}"
        case _:
            return "[" + ",".join(map(_shown, node)) + "]"


def _escape(found: re.Match[str]) -> str:
    """As Java's writer does: characters outside the first plane as the two halves of their pair."""
    halves = found[0].encode("utf-16-be", "surrogatepass").hex().upper()
    return _ESCAPES.get(found[0]) or "".join(
        f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4)
    )


def _shown_number(number: _Number) -> str:
    if _is_whole(number):
        return "0" if number == "-0" else str(number)
    value = _WORDS[number] if number in _WORDS else float(number)
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        return {"nan": '"NaN"', "inf": '"Infinity"', "-inf": '"-Infinity"'}[str(value)]
    return java_double(value)


def java_double(value: float) -> str:
    """A double as Java writes it: 1.5, 1.0E10, 1.0E-5."""
    if value == 0:
        return "-0.0" if str(value)[0] == "-" else "0.0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    exponent += len(digits) - 1  # of the first digit
    minus = "-" if sign else ""
    if not -3 <= exponent < 7:
        return f"{minus}{text[0]}.{text[1:] or '0'}E{exponent}"
    if exponent < 0:
        return f"{minus}0.{'0' * (-exponent - 1)}{text}"
    whole = text[: exponent + 1].ljust(exponent + 1, "0")
    return f"{minus}{whole}.{text[exponent + 1 :] or '0'}"
