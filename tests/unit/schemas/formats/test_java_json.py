"""Strings and numbers as Java's JSON libraries write them."""

import pytest

from headrace.schemas.formats.java_json import double, quoted


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a", '"a"'),
        ("é", '"é"'),
        ('"', r'"\""'),
        ("\t", r'"\t"'),
        ("\x1f", r'"\u001F"'),
        (r"\u001f", r'"\\u001f"'),  # a backslash and five letters: no escape
        ("\\\x1f", r'"\\\u001F"'),
    ],
)
def test_a_string(text: str, written: str) -> None:
    assert quoted(text) == written


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.5e300, "-1.5E300"),
        (123456789.0, "1.23456789E8"),
    ],
)
def test_a_double(number: float, written: str) -> None:
    assert double(number) == written
