"""Ids as text, in Kafka's form."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.ids import id_of_text, text_of_id


def test_kafkas_form() -> None:
    topic_id = UUID("5d1ae0c6-3b1f-4a86-9d55-0f6c3a0b8e21")
    assert text_of_id(topic_id) == "XRrgxjsfSoadVQ9sOguOIQ"
    assert id_of_text("XRrgxjsfSoadVQ9sOguOIQ") == topic_id


@given(st.uuids())
def test_every_id_comes_back(identifier: UUID) -> None:
    assert id_of_text(text_of_id(identifier)) == identifier


@pytest.mark.parametrize(
    "text",
    [
        "",
        "short",
        "x" * 21,
        "x" * 23,
        "ü" * 22,
        "XRrgxjsfSoadVQ9s+guOIQ",
        "XRrg xjsfSoadVQ9sOguOIQ",
    ],
)
def test_other_texts_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        id_of_text(text)
