"""Which topics and partitions an option means."""

import pytest

from headrace.cli.shell.command_line import Failure
from headrace.cli.tools.get_offsets import choice_of_list
from headrace.cli.topics.topic_choice import include_list


@pytest.mark.parametrize(
    ("pattern", "chosen"),
    [
        ("orders", ["orders"]),
        ("ord.*", ["orders", "orders-2"]),
        ("orders,logs", ["orders", "logs"]),
        ('"orders, logs"', ["orders", "logs"]),
        ("order", []),
    ],
)
def test_a_pattern_covers_whole_names(pattern: str, chosen: list[str]) -> None:
    matches = include_list(pattern)
    assert [name for name in ("orders", "orders-2", "logs") if matches(name)] == chosen


def test_a_pattern_that_is_none_is_told() -> None:
    with pytest.raises(Failure, match=r"\( is an invalid regex\."):
        include_list("(")


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("orders:1", ["orders-1"]),
        ("orders", ["orders-0", "orders-1", "orders-2"]),
        ("orders:", ["orders-0", "orders-1", "orders-2"]),
        ("orders:0-2", ["orders-0", "orders-1"]),
        ("orders:1-", ["orders-1", "orders-2"]),
        ("orders:-1", ["orders-0"]),
        (":2", ["orders-2", "logs-2"]),
        ("orders:0,lo.*:2", ["orders-0", "logs-2"]),
    ],
)
def test_lists_of_topics_and_ranges(text: str, chosen: list[str]) -> None:
    choice = choice_of_list(text)
    found = [
        f"{topic}-{number}"
        for topic in ("orders", "logs")
        for number in range(3)
        if choice(topic, number)
    ]
    assert found == chosen


def test_a_range_that_is_none_is_told() -> None:
    with pytest.raises(Failure, match="Invalid rule specification: a:b"):
        choice_of_list("a:b")
