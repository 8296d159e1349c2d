"""Text to typed values and back, by Kafka's rules; and the nearest known name of a mistyped one.

Knows nothing of where a value comes from. What is malformed raises `SettingError` with Kafka's
own sentence, which names the setting.
"""

from collections.abc import Iterable

from headrace.errors import SettingError
from headrace.settings.definitions.checks import invalid
from headrace.settings.definitions.setting import Setting
from headrace.settings.definitions.value_type import (
    INT_MAX,
    LONG_MAX,
    Password,
    Value,
    ValueType,
    shown,
)

_LONGEST_COMPARED = 80
_LEAST_LIKENESS = 0.75
_HIGHEST = {ValueType.SHORT: 2**15 - 1, ValueType.INT: INT_MAX, ValueType.LONG: LONG_MAX}


def parse(setting: Setting, text: str, name: str | None = None) -> Value:
    """The value that `text` means for `setting`; `name` when it is set under a listener's prefix."""
    name = name or setting.name
    value = _converted(setting.type, name, text.strip())
    if setting.check is not None:
        refusal = setting.check.refusal(name, value)
        if refusal is not None:
            raise SettingError(refusal)
    return value


def text_of(setting: Setting, value: Value) -> str | None:
    """The value as DescribeConfigs shows it: secrets and what is not set are None."""
    if value is None or setting.sensitive:
        return None
    return shown(value)


def _converted(type_: ValueType, name: str, text: str) -> Value:
    match type_:
        case ValueType.BOOLEAN:
            lowered = text.lower()
            if lowered not in {"true", "false"}:
                reason = "Expected value to be either true or false"
                raise SettingError(invalid(name, text, reason))
            return lowered == "true"
        case ValueType.INT | ValueType.LONG | ValueType.SHORT:
            return _whole_number(type_, name, text)
        case ValueType.DOUBLE:
            return _fraction(name, text)
        case ValueType.LIST:
            return list_entries(text)
        case ValueType.PASSWORD:
            return Password(text)
        case _:
            return text


def list_entries(text: str) -> tuple[str, ...]:
    """Entries between commas, without the spaces around them and without repetitions."""
    if not text:
        return ()
    return tuple(dict.fromkeys(entry.strip() for entry in text.split(",")))


def _whole_number(type_: ValueType, name: str, text: str) -> int:
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if digits.isascii() and digits.isdigit():
        number = int(text)
        if -_HIGHEST[type_] - 1 <= number <= _HIGHEST[type_]:
            return number
    raise SettingError(invalid(name, text, f"Not a number of type {type_.name}"))


def _fraction(name: str, text: str) -> float:
    if text in {"NaN", "+NaN", "-NaN", "Infinity", "+Infinity", "-Infinity"}:
        return float(text)
    # Python alone knows underscores and words in other cases; Java alone a type letter at the end.
    number = text[:-1] if text[-1:] in {"d", "D", "f", "F"} else text
    if number[-1:].isdigit() or number[-1:] == ".":
        try:
            return float(number if "_" not in number else "refused")
        except ValueError:
            pass
    raise SettingError(invalid(name, text, "Not a number of type DOUBLE"))


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like `name`, if any looks like it at all.

    Cheap, because a request may hold very many names: what two names begin and end with alike is what counts.
    """
    wanted = name.strip().lower().replace("_", ".")
    if not 0 < len(wanted) <= _LONGEST_COMPARED:
        return None
    # A mistyped name begins with the right letter.
    alike = ((_likeness(wanted, each), each) for each in known if each[0] == wanted[0])
    likeness, nearest = max(alike, default=(0.0, ""))
    return nearest if likeness >= _LEAST_LIKENESS else None


def _likeness(left: str, right: str) -> float:
    """The share of letters at both ends that two names have in common."""
    shorter, longer = sorted((len(left), len(right)))
    if shorter < longer * _LEAST_LIKENESS:
        return 0.0
    common = _common_letters(left, right) + _common_letters(left[::-1], right[::-1])
    return min(common, shorter) / longer


def _common_letters(left: str, right: str) -> int:
    """How many letters two names begin with alike."""
    pairs = zip(left, right, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other), min(len(left), len(right))
    )


def unknown_name(name: str, known: Iterable[str]) -> str:
    """The sentence about a name that is in no table."""
    nearest = nearest_name(name, known)
    return f"{name}: unknown setting" + (f"; nearest known name: {nearest}" if nearest else "")
