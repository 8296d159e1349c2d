"""Which partition a typed line goes to."""

import pytest

from headrace.cli.records.line_partitions import BY_KEY, LinePartitions
from headrace.cli.shell.command_line import Failure

ROUND_ROBIN = "org.apache.kafka.clients.producer.RoundRobinPartitioner"


def partitions(
    properties: dict[str, str] | None = None, *, count: int = 3, start: int = 0
) -> LinePartitions:
    found = LinePartitions(properties or {}, start=start)
    found.set_partitions(dict.fromkeys(range(count), 1))
    return found


def test_lines_without_a_key_go_to_one_partition_after_the_other() -> None:
    lines = partitions(start=4)
    assert [lines.choose(None) for _ in range(7)] == [1, 2, 0, 1, 2, 0, 1]


def test_a_key_decides_for_itself_and_takes_no_place() -> None:
    lines = partitions()
    assert [lines.choose(key) for key in (None, b"k", b"", None)] == [0, BY_KEY, BY_KEY, 1]


@pytest.mark.parametrize(
    "properties", [{"partitioner.class": ROUND_ROBIN}, {"partitioner.ignore.keys": "true"}]
)
def test_keys_can_be_ignored_as_in_java(properties: dict[str, str]) -> None:
    lines = partitions(properties)
    assert [lines.choose(key) for key in (b"k", None, b"k", b"k")] == [0, 1, 2, 0]


def test_partitions_without_a_leader_are_passed_over_while_others_have_one() -> None:
    lines = partitions()
    lines.set_partitions({0: 1, 1: -1, 2: 1})
    assert [lines.choose(None) for _ in range(4)] == [0, 2, 0, 2]
    lines.set_partitions({0: -1, 1: -1})
    assert [lines.choose(None) for _ in range(2)] == [0, 1]


def test_a_partition_that_is_added_gets_lines() -> None:
    lines = partitions(count=1)
    assert [lines.choose(None), lines.choose(None)] == [0, 0]
    lines.set_partitions({0: 1, 1: 1})
    assert {lines.choose(None), lines.choose(None)} == {0, 1}


def test_without_known_partitions_and_with_librdkafkas_own_setting_librdkafka_chooses() -> None:
    assert partitions(count=0).choose(None) == BY_KEY
    assert partitions({"partitioner": "random"}).choose(None) == BY_KEY


def test_a_class_of_java_that_is_not_known_is_told() -> None:
    with pytest.raises(Failure, match=r"com\.me\.Mine is not known"):
        partitions({"partitioner.class": "com.me.Mine"})
