"""Which values of a setting are allowed. A check returns Kafka's own sentence of refusal, or None.

`str(check)` is what the documentation shows. Checks see parsed values, never text.
"""

import re
from typing import Protocol

from headrace.settings.definitions.value_type import Value, shown

_THROTTLED_REPLICA = r"[0-9]+:[0-9]+"
_DURATION = r"P(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+(?:\.\d+)?S)?)?"


class Check(Protocol):
    """A rule on the value of one setting."""

    def refusal(self, name: str, value: Value) -> str | None: ...


def invalid(name: str, value: Value, reason: str) -> str:
    """Kafka's sentence for a bad value."""
    return f"Invalid value {shown(value)} for configuration {name}: {reason}"


class Between:
    """A number in a closed range; `also` is one more number that is allowed outside of it."""

    __slots__ = ("also", "high", "low")

    def __init__(self, low: float, high: float | None = None, also: int | None = None) -> None:
        self.low = low
        self.high = high
        self.also = also

    def refusal(self, name: str, value: Value) -> str | None:
        if value is None:
            return invalid(name, value, "Value must be non-null")
        assert isinstance(value, int | float)
        too_low = value < self.low
        if not too_low and (self.high is None or not value > self.high):
            return None
        if self.also is not None:
            if value == self.also:
                return None
            reason = f"Value must be between {self.low} and {self.high} or equal to {self.also}"
        else:
            reason = (
                f"Value must be at least {self.low}"
                if too_low
                else f"Value must be no more than {self.high}"
            )
        return invalid(name, value, reason)

    def __str__(self) -> str:
        text = f"≥ {self.low}" if self.high is None else f"{self.low} to {self.high}"
        return text if self.also is None else f"{text}, or {self.also}"


class OneOf:
    """One of a few words."""

    __slots__ = ("ignore_case", "words")

    def __init__(self, *words: str, ignore_case: bool = False) -> None:
        self.words = words
        self.ignore_case = ignore_case

    def refusal(self, name: str, value: Value) -> str | None:
        if value in self.words:
            return None
        if self.ignore_case and isinstance(value, str) and value.upper() in self.words:
            return None
        note = " (case insensitive)" if self.ignore_case else ""
        return invalid(name, value, f"String must be one of{note}: {', '.join(self.words)}")

    def __str__(self) -> str:
        return ", ".join(self.words)


class Entries:
    """A list without empty entries, of certain words if any are given; `empty` lets it be empty."""

    __slots__ = ("empty", "words")

    def __init__(self, *words: str, empty: bool = False) -> None:
        self.words = words
        self.empty = empty

    def refusal(self, name: str, value: Value) -> str | None:
        if value is None:
            return None
        assert isinstance(value, tuple)
        if not value and not self.empty:
            allowed = f"[{', '.join(self.words)}]" if self.words else "any non-empty value"
            return f"Configuration '{name}' must not be empty. Valid values include: {allowed}"
        if "" in value:
            return f"Configuration '{name}' values must not be empty."
        for entry in value:
            if self.words and entry not in self.words:
                return invalid(name, entry, f"String must be one of: {', '.join(self.words)}")
        return None

    def __str__(self) -> str:
        return f"any of {', '.join(self.words)}" if self.words else ""


class NonEmpty:
    """Text that is not empty when it is given."""

    __slots__ = ()

    def refusal(self, name: str, value: Value) -> str | None:
        return invalid(name, value, "String must be non-empty") if value == "" else None

    def __str__(self) -> str:
        return "not empty"


class ThrottledReplicas:
    """`*`, or a list of partition:broker."""

    __slots__ = ()

    def refusal(self, name: str, value: Value) -> str | None:
        assert isinstance(value, tuple)
        # Java's String.split drops trailing empty entries, so Kafka lets "0:1," pass.
        entries = value[:-1] if len(value) > 1 and value[-1] == "" else value
        if entries == ("*",) or all(re.fullmatch(_THROTTLED_REPLICA, entry) for entry in entries):
            return None
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        return f"Invalid value [{', '.join(value)}] for configuration {name}: {reason}"

    def __str__(self) -> str:
        return "* or a list of partition:broker"


class OffsetReset:
    """Where a share group begins: earliest, latest, or so long ago."""

    __slots__ = ()

    def refusal(self, name: str, value: Value) -> str | None:
        assert isinstance(value, str)
        kind, _, duration = value.partition(":")
        if value in {"earliest", "latest"}:
            return None
        if kind == "by_duration" and len(duration) > 1 and re.fullmatch(_DURATION, duration):
            return None
        reason = (
            f"Invalid value `{value}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        return invalid(name, value, reason)

    def __str__(self) -> str:
        return "earliest, latest, by_duration:PnDTnHnMn.nS"


def at_least(low: int) -> Between:
    return Between(low)
