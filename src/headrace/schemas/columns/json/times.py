"""Dates and timestamps in the text forms that Spark casts from: `[+-]yyyy[-[m]m[-[d]d]]`, then `T` or a space, a time, a zone. Pure.

Results are what Arrow stores: days and microseconds since 1970. Text without a zone is taken as UTC. Raises ValueError.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

_DATE: Final = re.compile(
    r"([+-]?)(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII | re.DOTALL
)
_DAY_NUMBER: Final = re.compile(r"[+-]?\d{1,10}", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"([+-]?)(\d{4,6})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?(\D.*)?)?)?)?)?)?",
    re.ASCII | re.DOTALL,
)
_OFFSET: Final = re.compile(
    r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{1,2})(?::?(\d{2}))?)?", re.ASCII
)
_SPACE: Final = "".join(map(chr, range(0x21))) + "\x7f"  # what Spark trims
_DAYS_OF_400_YEARS: Final = 146_097
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LONG: Final = 2**63


def days(text: str) -> int:
    """A date; what follows it after `T` or a space is passed over, and other numbers are days since 1970, as in Spark."""
    found = _DATE.fullmatch(text.strip(_SPACE))
    if found is not None:
        return _days(found[1], found[2], found[3], found[4])
    if _DAY_NUMBER.fullmatch(text) and -(2**31) <= int(text) < 2**31:
        return int(text)
    raise ValueError(f"'{text}' is no date")


def microseconds(text: str, *, with_zone: bool) -> int:
    """A timestamp. Digits behind microseconds are cut off. `with_zone`: whether a zone may follow."""
    found = _TIMESTAMP.fullmatch(text.strip(_SPACE))
    if found is None:
        raise ValueError(f"'{text}' is no timestamp with a date")
    sign, year, month, day, hour, minute, second, fraction, zone = found.groups()
    if zone is not None and not with_zone:
        raise ValueError(f"'{text}' has a zone, and the column's type has none")
    hours, minutes, seconds = int(hour or 0), int(minute or 0), int(second or 0)
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError(f"'{text}' has no such time of day")
    day_number = _days(sign, year, month, day)
    local_s = day_number * 86_400 + hours * 3600 + minutes * 60 + seconds
    offset_s = 0 if zone is None else _offset_s(_zone(zone.strip(_SPACE)), local_s)
    found_us = (local_s - offset_s) * 1_000_000 + int((fraction or "")[:6].ljust(6, "0"))
    if not -_LONG <= found_us < _LONG:
        raise ValueError(f"'{text}' is out of range")
    return found_us


def _days(sign: str, year: str, month: str | None, day: str | None) -> int:
    """Days since 1970 in the Gregorian calendar, also of years that Python's dates do not have."""
    number = -int(year) if sign == "-" else int(year)
    cycles, within = divmod(number - 2000, 400)
    return (
        date(2000 + within, int(month or 1), int(day or 1)).toordinal()
        - _EPOCH
        + cycles * _DAYS_OF_400_YEARS
    )


@lru_cache(maxsize=1000)
def _zone(name: str) -> tzinfo:
    if name in ("Z", "UTC", "GMT", "UT"):
        return UTC
    found = _OFFSET.fullmatch(name)
    if found is not None:
        # As Java reads them: +hmm does not exist, and a lone digit of hours or minutes needs its colon.
        hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:])
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if minutes > 59 or seconds > 59 or offset > timedelta(hours=18):
            raise ValueError(f"'{name}' is no zone")
        return timezone(-offset if found[1] == "-" else offset)
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"'{name}' is no zone") from error


def _offset_s(zone: tzinfo, local_s: int) -> int:
    offset: timedelta | None
    if isinstance(zone, timezone):
        offset = zone.utcoffset(None)
    else:
        try:
            local = datetime(1970, 1, 1) + timedelta(seconds=local_s)  # noqa: DTZ001 - its zone comes next
        except OverflowError as error:
            raise ValueError("a zone's rules are not known for such a year") from error
        # In the hour that a clock skips, Java takes the offset before it; of the hour that comes twice, the first: fold=0.
        offset = local.replace(tzinfo=zone).utcoffset()
    assert offset is not None
    return offset.days * 86_400 + offset.seconds
