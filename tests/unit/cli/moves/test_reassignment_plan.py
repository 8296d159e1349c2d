import json

import pytest

from headrace.cli.moves.reassignment_plan import (
    Move,
    Replica,
    check_plan,
    moves,
    parse_broker_list,
    parse_plan,
    parse_topics,
    plan_json,
    throttled_replicas,
)
from headrace.cli.shell.command_line import Failure
from headrace.client.admin.reassignments import Reassignment
from headrace.ids import TopicPartition

A0, A1, A10 = (TopicPartition("a", index) for index in (0, 1, 10))


def entry(partition: int, replicas: list[int], **more: object) -> dict[str, object]:
    return {"topic": "a", "partition": partition, "replicas": replicas, **more}


def plan_text(*entries: dict[str, object], **more: object) -> str:
    return json.dumps({"partitions": entries, **more})


def test_a_plan_is_read_and_written_back() -> None:
    plan = parse_plan(plan_text(entry(1, [2, 3]), entry(0, [1], log_dirs=["/x"]), version=1))
    assert plan.targets == {A0: [1], A1: [2, 3]}
    assert plan.log_dirs == {Replica(1, "a", 0): "/x"}
    assert plan_json(plan.targets) == (
        '{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[1],"log_dirs":["any"]},'
        '{"topic":"a","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
    )


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("{", "The input string is not a valid JSON"),
        ("[]", "The input string is not a valid JSON"),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"partitions": [{"topic": "a"}]}', "the file does not say what to move"),
        (
            plan_text(entry(0, [1, 2], log_dirs=["any"])),
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition a-0",
        ),
    ],
)
def test_what_is_no_plan_is_refused(text: str, mistake: str) -> None:
    with pytest.raises(Failure) as failure:
        parse_plan(text)
    assert failure.value.what == mistake


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("{}", "Partition reassignment list cannot be empty"),
        (plan_text(entry(0, [])), "Partition replica list cannot be empty"),
        (
            plan_text(entry(0, [1]), entry(0, [2])),
            "Partition reassignment contains duplicate topic partitions: a-0",
        ),
        (
            plan_text(entry(0, [1, 1])),
            "Partition replica lists may not contain duplicate entries: a-0 contains multiple entries for 1",
        ),
    ],
)
def test_what_cannot_be_carried_out_is_refused(text: str, mistake: str) -> None:
    with pytest.raises(Failure) as failure:
        check_plan(parse_plan(text))
    assert failure.value.what == mistake


def test_topics_and_brokers() -> None:
    assert parse_topics('{"topics": [{"topic": "b"}, {"topic": "a"}]}') == ["b", "a"]
    with pytest.raises(Failure, match="duplicate entries: \\[b\\]"):
        parse_topics('{"topics": [{"topic": "b"}, {"topic": "b"}]}')
    assert parse_broker_list("2,1") == [2, 1]
    with pytest.raises(Failure, match="Broker list contains duplicate entries: \\[1\\]"):
        parse_broker_list("1,1")
    with pytest.raises(Failure, match="is not a list of broker ids"):
        parse_broker_list("1,x")


def test_what_moves_is_throttled_at_both_ends() -> None:
    ongoing = {A10: Reassignment(replicas=[4, 1, 2], adding=[4], removing=[2])}
    moving = moves(ongoing, {A0: [2, 3], A10: [5]}, {A0: [1, 2]})
    assert moving == {
        A0: Move(frozenset({1, 2}), frozenset({3})),
        A10: Move(frozenset({1, 2}), frozenset({5})),
    }
    assert throttled_replicas(moving) == {"a": ("0:1,0:2,10:1,10:2", "0:3,10:5")}


def test_a_partition_that_is_not_there_does_not_move() -> None:
    with pytest.raises(Failure, match="Trying to reassign a topic partition a-1 with 0 replicas"):
        moves({}, {A1: [1]}, {A0: [1]})
