"""Subjects by Confluent's strategies."""

import pytest

from headrace.schemas.subject_names import (
    NoSubject,
    SubjectNameStrategy,
    context_of,
    in_context,
    parse_strategy,
    subject_name,
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("topic", SubjectNameStrategy.TOPIC),
        ("TopicNameStrategy", SubjectNameStrategy.TOPIC),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", SubjectNameStrategy.RECORD),
        ("topic-record", SubjectNameStrategy.TOPIC_RECORD),
        ("TopicRecordNameStrategy", SubjectNameStrategy.TOPIC_RECORD),
    ],
)
def test_strategies_by_name(text: str, wanted: SubjectNameStrategy) -> None:
    assert parse_strategy(text) is wanted


def test_an_unknown_strategy_is_told() -> None:
    with pytest.raises(ValueError, match="there are TopicNameStrategy"):
        parse_strategy("org.me.Mine")


@pytest.mark.parametrize(
    ("strategy", "is_key", "wanted"),
    [
        (SubjectNameStrategy.TOPIC, False, "orders-value"),
        (SubjectNameStrategy.TOPIC, True, "orders-key"),
        (SubjectNameStrategy.RECORD, False, "shop.Order"),
        (SubjectNameStrategy.TOPIC_RECORD, True, "orders-shop.Order"),
    ],
)
def test_names(strategy: SubjectNameStrategy, is_key: bool, wanted: str) -> None:
    found = subject_name(strategy, "orders", is_key=is_key, record_name="shop.Order")
    assert found == wanted


def test_a_record_without_a_name_has_no_subject_of_its_own() -> None:
    with pytest.raises(NoSubject, match="must be a record"):
        subject_name(SubjectNameStrategy.RECORD, "orders", is_key=False, record_name="")


def test_contexts() -> None:
    assert in_context("", "s") == "s"
    assert in_context(".", "s") == "s"
    assert in_context(".sales", "s") == ":.sales:s"
    assert in_context("sales", "s") == ":.sales:s"
    assert in_context(".sales", ":.own:s") == ":.own:s"


@pytest.mark.parametrize(
    ("subject", "context"),
    [
        ("orders-value", ""),
        (":.sales:orders-value", ".sales"),
        (":.sales:", ".sales"),
        (":.:orders-value", "."),
        ("a:b", ""),
        (":orders", ""),
        (":.orders", ""),
    ],
)
def test_the_context_that_a_subject_names(subject: str, context: str) -> None:
    assert context_of(subject) == context
