import pytest

from headrace.errors import SettingError
from headrace.properties import parse_overrides, parse_properties


def test_comments_blank_lines_and_separators() -> None:
    text = """
    # a comment
    ! another
    a=1
    b = 2
    c: 3
    d 4
    e
    a.url=http://host:80/x=y
    """
    assert parse_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "4",
        "e": "",
        "a.url": "http://host:80/x=y",
    }


def test_lines_go_on_after_a_backslash() -> None:
    assert parse_properties("list=a,\\\n    b,\\\n    # not a comment\nnext=1") == {
        "list": "a,b,# not a comment",
        "next": "1",
    }
    assert parse_properties("path=c:\\\\\nnext=1") == {"path": "c:\\", "next": "1"}
    assert parse_properties("last=1\\") == {"last": "1"}


def test_escapes() -> None:
    assert parse_properties(r"a\ b\=c=x\ty\u00e9\n\q") == {"a b=c": "x\ty\u00e9\nq"}
    assert parse_properties(r"smile=\ud83d\ude00") == {"smile": "\U0001f600"}
    with pytest.raises(SettingError, match="malformed escape"):
        parse_properties(r"a=\u12g4")


def test_the_last_of_two_counts_and_trailing_blanks_stay() -> None:
    assert parse_properties("a=1\r\na=2 \r") == {"a": "2 "}


def test_overrides() -> None:
    assert parse_overrides(["a=1", " b = x=y "]) == {"a": "1", "b": "x=y"}
    with pytest.raises(SettingError, match="'nonsense': expected name=value"):
        parse_overrides(["nonsense"])
