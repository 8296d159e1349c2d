"""What the store takes in one write is limited: larger assignments are split, or refused before anything is written."""

import pytest

from headrace.controller.core import ControllerSettings
from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.controller.isr import AlterPartition, IsrMember, IsrProposal
from headrace.controller.reassignment import AlterReassignments
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.coordination.nodes import PartitionStateNode, TopicNode
from headrace.coordination.store import Create, weight
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel

COUNT = 200


def limited(max_group_bytes: int) -> ClusterModel:
    model = ClusterModel(0, 1, 2, 3)
    model.max_group_bytes = max_group_bytes
    model.settings = ControllerSettings(max_partitions_per_request=1_000_000)
    model.take_over()
    return model


def create(model: ClusterModel, count: int) -> ErrorCode:
    topic = NewTopic(name="t", assignments=tuple((index, (index % 2, 2)) for index in range(count)))
    (answer,) = model.do(CreateTopics(topics=(topic,)))
    return answer.error


def head_bytes(model: ClusterModel) -> int:
    """The weight of the write that makes the topic."""
    node = model.nodes[TopicNode.path("t")]
    return weight(Create(TopicNode.path("t"), node.data)) + weight(
        Create(PartitionStateNode.folder("t"))
    )


def test_a_topic_at_the_limit_is_created_and_one_past_it_is_refused_before_a_write() -> None:
    roomy = limited(1 << 20)
    create(roomy, COUNT)
    limit = head_bytes(roomy)
    assert create(limited(limit), COUNT) is ErrorCode.NONE
    model = limited(limit - 1)
    before = dict(model.nodes)
    assert create(model, COUNT) is ErrorCode.INVALID_PARTITIONS
    assert model.nodes == before


def test_a_topic_grows_to_the_limit_and_not_past_it() -> None:
    roomy = limited(1 << 20)
    create(roomy, COUNT)
    model = limited(head_bytes(roomy))
    create(model, COUNT - 10)
    before = dict(model.nodes)
    (answer,) = model.do(CreatePartitions(topics=(MorePartitions(name="t", count=2 * COUNT),)))
    assert answer.error is ErrorCode.INVALID_PARTITIONS
    assert f"with {2 * COUNT} partitions is too large" in str(answer.message)
    assert model.nodes == before
    (answer,) = model.do(CreatePartitions(topics=(MorePartitions(name="t", count=COUNT),)))
    assert answer.error is ErrorCode.NONE


@pytest.mark.parametrize("crash_after", [None, 0, 1, 2, 3])
def test_a_large_reassignment_is_written_in_parts(crash_after: int | None) -> None:
    """After each of them a new controller finds the topic's node and the partitions' states in agreement."""
    model = limited(16_000)
    create(model, COUNT)
    targets = {TopicPartition("t", index): (3, 2) for index in range(COUNT)}
    event = AlterReassignments(targets=targets)
    groups = model.machine.decide(event).groups
    assert len(groups) > 3
    if crash_after is None:
        assert {answer.error for answer in model.do(event)} == {ErrorCode.NONE}
    else:
        model.crash_after(event, crash_after)
    model.check()
    moving = [each.is_reassigning for each in model.state.topics["t"].partitions]
    assert all(moving) == (crash_after is None)
    assert any(moving) == (crash_after != 0)
    model.do(event)
    arrive(model)


def arrive(model: ClusterModel) -> None:
    """The added replica is in sync everywhere: all moves end."""
    topic = model.state.topics["t"]
    for leader in (0, 1):
        proposals = tuple(
            IsrProposal(
                topic_id=topic.topic_id,
                partition=index,
                leader_epoch=each.leader_epoch,
                partition_epoch=each.partition_epoch,
                new_isr=tuple(IsrMember(broker_id=member) for member in each.replicas),
            )
            for index, each in enumerate(topic.partitions)
            if each.leader == leader
        )
        model.do(
            AlterPartition(broker_id=leader, broker_epoch=model.epoch(leader), proposals=proposals)
        )
    model.check()
    assert {each.replicas for each in model.state.topics["t"].partitions} == {(3, 2)}


def test_a_reassignment_that_does_not_fit_is_refused_before_a_write() -> None:
    roomy = limited(1 << 20)
    create(roomy, COUNT)
    model = limited(head_bytes(roomy) + 500)
    create(model, COUNT)
    before = dict(model.nodes)
    targets = {TopicPartition("t", index): (3, 2) for index in range(COUNT)}
    answers = model.do(AlterReassignments(targets=targets))
    assert [answer.partition for answer in answers] == list(targets)
    assert {answer.error for answer in answers} == {ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    assert "Reassign fewer partitions at a time" in str(answers[0].message)
    assert model.nodes == before
    (answer,) = model.do(AlterReassignments(targets={TopicPartition("t", 0): (3, 2)}))
    assert answer.error is ErrorCode.NONE
