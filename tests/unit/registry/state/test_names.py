"""Names of subjects and contexts."""

import pytest

from headrace.registry.state.names import (
    SubjectName,
    is_valid_scope,
    is_valid_subject,
    normal,
    parse_subject,
    relative,
)


@pytest.mark.parametrize(
    ("text", "context", "name"),
    [
        ("a", ".", "a"),
        (":.:a", ".", "a"),
        (":.c:a", ".c", "a"),
        (":.c:a:b", ".c", "a:b"),
        (":.c:", ".c", ""),
        (":.c", ".c", ""),
        (":c:a", ".", ":c:a"),
        (":*:a", "*", "a"),
        ("", ".", ""),
    ],
)
def test_contexts_in_names(text: str, context: str, name: str) -> None:
    assert parse_subject(text) == SubjectName(context, name)


def test_one_text_for_one_subject() -> None:
    assert normal(":.:a") == "a"
    assert normal(":.c") == ":.c:"


def test_references_lie_in_the_same_context() -> None:
    assert relative("a", ".c") == ":.c:a"
    assert relative(":.d:a", ".c") == ":.d:a"
    assert relative("a", ".") == "a"


@pytest.mark.parametrize("text", ["__GLOBAL", "__EMPTY", "a\x00b", ":.c:__GLOBAL", "\x85"])
def test_names_that_nobody_may_have(text: str) -> None:
    assert not is_valid_scope(parse_subject(text))
    assert not is_valid_subject(parse_subject(text))


@pytest.mark.parametrize("text", [":.c:", ":.__GLOBAL:a", ":*:a"])
def test_names_for_settings_only(text: str) -> None:
    assert is_valid_scope(parse_subject(text))
    assert not is_valid_subject(parse_subject(text))
