"""The types a setting's value can have, and how Kafka writes a value of each as text."""

from enum import IntEnum
from math import isinf, isnan
from typing import TypeAlias

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
DOUBLE_MAX = 1.7976931348623157e308


class ValueType(IntEnum):
    """Numbers as in DescribeConfigs (its field config_type)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN = ValueType.BOOLEAN
STRING = ValueType.STRING
INT = ValueType.INT
SHORT = ValueType.SHORT
LONG = ValueType.LONG
DOUBLE = ValueType.DOUBLE
LIST = ValueType.LIST
CLASS = ValueType.CLASS
PASSWORD = ValueType.PASSWORD


class Password(str):
    """A secret: its text is for the code that needs it and never for a person or a log."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "[hidden]"


Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


def shown(value: Value) -> str:
    """The value as Kafka prints it inside messages and as the value of a config."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case tuple():
            return ",".join(value)
        case Password():
            return "[hidden]"
        case _:
            return str(value)


def _java_double(value: float) -> str:
    """Java's Double.toString: always a fraction, E notation outside 10^-3..10^7."""
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(text for digits in range(17) if float(text := f"{value:.{digits}e}") == value)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}E{int(exponent)}"
