"""Times and durations of `consumer-groups --reset-offsets`."""

import pytest

from headrace.cli.groups.group_reset import milliseconds_of, timestamp_of
from headrace.cli.shell.command_line import UsageError


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T00:01", 60_000),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T00:00:00.000Z", 0),
        ("2026-01-02T03:04:05.678", 1767323045678),
    ],
)
def test_times(text: str, milliseconds: int) -> None:
    assert timestamp_of(text) == milliseconds


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT1S", 1000),
        ("PT0.5S", 500),
        ("P1D", 86_400_000),
        ("P1DT2H3M4S", 93_784_000),
        ("PT5M", 300_000),
        ("-PT5M", -300_000),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert milliseconds_of(text) == milliseconds


@pytest.mark.parametrize("text", ["P", "PT", "5 minutes", ""])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError):
        milliseconds_of(text)


def test_what_is_no_time() -> None:
    with pytest.raises(UsageError):
        timestamp_of("yesterday")
