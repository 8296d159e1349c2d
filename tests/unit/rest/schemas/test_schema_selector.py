"""Subjects by strategy."""

import pytest

from headrace.rest.schemas.schema_selector import SchemaSelector, SubjectStrategy


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        (None, "t-value"),
        (SubjectStrategy.TOPIC_NAME, "t-value"),
        (SubjectStrategy.RECORD_NAME, "n.R"),
        (SubjectStrategy.TOPIC_RECORD_NAME, "t-n.R"),
    ],
)
def test_subjects(strategy: SubjectStrategy | None, subject: str) -> None:
    selector = SchemaSelector("t", False, strategy=strategy)
    assert selector.subject_of("n.R") == subject
    assert selector._replace(subject="mine").subject_of("n.R") == "mine"


def test_keys_have_a_subject_of_their_own() -> None:
    assert SchemaSelector("t", True).subject_of(None) == "t-key"


def test_a_subject_of_a_record_needs_its_name() -> None:
    selector = SchemaSelector("t", False, strategy=SubjectStrategy.RECORD_NAME)
    assert selector.subject_of(None) is None


def test_only_the_newest_may_be_another_one_later() -> None:
    selector = SchemaSelector("t", False)
    assert selector.means_newest
    for fixed in ({"schema_id": 1}, {"version": 1}, {"text": "s"}):
        assert not selector._replace(**fixed).means_newest
