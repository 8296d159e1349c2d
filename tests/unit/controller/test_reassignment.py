"""Replicas on the move, and leaders that are asked for."""

import pytest

from headrace.controller.isr import AlterPartition, IsrMember, IsrProposal
from headrace.controller.leaders import ElectionType, ElectLeaders, imbalanced
from headrace.controller.offline_replicas import ReplicasOffline
from headrace.controller.reassignment import AlterReassignments, PartitionAnswer
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import NO_LEADER
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel

T0 = TopicPartition("t", 0)


@pytest.fixture
def model() -> ClusterModel:
    model = ClusterModel(0, 1, 2, 3)
    model.do(CreateTopics(topics=(NewTopic(name="t", assignments=((0, (0, 1)),)),)))
    return model


def move(model: ClusterModel, target: tuple[int, ...] | None) -> PartitionAnswer:
    (answer,) = model.do(AlterReassignments(targets={T0: target}))
    model.check()
    return answer


def propose(model: ClusterModel, *isr: int) -> ErrorCode:
    partition = model.partition("t")
    answer = model.do(
        AlterPartition(
            broker_id=partition.leader,
            broker_epoch=model.epoch(partition.leader),
            proposals=(
                IsrProposal(
                    topic_id=model.topic_id("t"),
                    partition=0,
                    leader_epoch=partition.leader_epoch,
                    partition_epoch=partition.partition_epoch,
                    new_isr=tuple(IsrMember(broker_id=broker) for broker in isr),
                ),
            ),
        )
    )
    model.check()
    return answer.partitions[0].error


def test_a_move_ends_when_all_that_were_added_are_in_sync(model: ClusterModel) -> None:
    assert move(model, (2, 3)).error is ErrorCode.NONE
    partition = model.partition("t")
    assert partition.replicas == (2, 3, 0, 1)
    assert (partition.adding, partition.removing) == ((2, 3), (0, 1))
    assert (partition.leader, partition.isr) == (0, (0, 1))
    assert propose(model, 0, 1, 2) is ErrorCode.NONE
    assert model.partition("t").is_reassigning
    assert propose(model, 0, 1, 2, 3) is ErrorCode.NEW_LEADER_ELECTED
    partition = model.partition("t")
    assert (partition.replicas, partition.isr) == ((2, 3), (2, 3))
    assert (partition.leader, partition.leader_epoch) == (2, 1)
    assert not partition.is_reassigning


def test_a_move_that_adds_nobody_ends_at_once(model: ClusterModel) -> None:
    assert move(model, (1,)).error is ErrorCode.NONE
    partition = model.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((1,), (1,), 1)
    assert move(model, (1, 0)).error is ErrorCode.NONE
    assert model.partition("t").adding == (0,)


def test_a_change_of_order_changes_the_preferred_leader(model: ClusterModel) -> None:
    move(model, (1, 0))
    partition = model.partition("t")
    assert (partition.replicas, partition.leader) == ((1, 0), 0)
    assert imbalanced(model.machine.core) == (T0,)


def test_a_move_is_taken_back(model: ClusterModel) -> None:
    before = model.partition("t")
    move(model, (2, 3))
    propose(model, 0, 1, 2)
    assert move(model, None).error is ErrorCode.NONE
    partition = model.partition("t")
    assert (partition.replicas, partition.isr) == (before.replicas, before.isr)
    assert move(model, None).error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_is_redirected(model: ClusterModel) -> None:
    move(model, (2, 3))
    move(model, (0, 3))
    partition = model.partition("t")
    assert (partition.replicas, partition.adding, partition.removing) == ((0, 3, 1), (3,), (1,))


def test_the_leader_of_a_move_that_is_taken_back_hands_over(model: ClusterModel) -> None:
    move(model, (2, 3))
    propose(model, 0, 1, 2)
    model.lose(0, 1)
    assert model.partition("t").leader == 2
    answer = move(model, None)
    assert answer.error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert answer.message is not None
    assert "unclean leader election" in answer.message


def test_moves_refused(model: ClusterModel) -> None:
    assert move(model, (9,)).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(model, ()).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert move(model, (2, 2)).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    nowhere = {TopicPartition("t", 5): (1,), TopicPartition("x", 0): (1,)}
    answers = model.do(AlterReassignments(targets=nowhere))
    assert {a.error for a in answers} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    fixed = AlterReassignments(targets={T0: (1, 2, 3)}, allow_factor_change=False)
    (answer,) = model.do(fixed)
    assert answer.error is ErrorCode.INVALID_REPLICATION_FACTOR


def elect(model: ClusterModel, kind: ElectionType = ElectionType.PREFERRED) -> ErrorCode:
    (answer,) = model.do(ElectLeaders(election_type=kind, partitions=(T0,)))
    model.check()
    return answer.error


def test_the_preferred_leader_gets_the_lead_back(model: ClusterModel) -> None:
    assert elect(model) is ErrorCode.ELECTION_NOT_NEEDED
    model.lose(0)
    assert elect(model) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    model.register(0)
    assert elect(model) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, "it has not caught up"
    assert imbalanced(model.machine.core) == ()
    propose(model, 0, 1)
    assert imbalanced(model.machine.core) == (T0,)
    assert elect(model) is ErrorCode.NONE
    assert (model.partition("t").leader, model.partition("t").leader_epoch) == (0, 2)


def test_an_unclean_election_needs_an_offline_partition_and_a_living_replica(
    model: ClusterModel,
) -> None:
    assert elect(model, ElectionType.UNCLEAN) is ErrorCode.ELECTION_NOT_NEEDED
    propose(model, 0)
    model.lose(0)
    assert model.partition("t").leader == NO_LEADER
    assert elect(model, ElectionType.UNCLEAN) is ErrorCode.NONE
    assert (model.partition("t").leader, model.partition("t").isr) == (1, (1,))
    model.lose(1)
    assert elect(model, ElectionType.UNCLEAN) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_elections_everywhere_leave_out_what_needs_none(model: ClusterModel) -> None:
    model.do(CreateTopics(topics=(NewTopic(name="u", assignments=((0, (1, 0)),)),)))
    model.lose(1)
    model.register(1)
    answers = model.do(ElectLeaders())
    assert [(a.partition, a.error) for a in answers] == [
        (TopicPartition("u", 0), ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    ]
    answers = model.do(ElectLeaders(partitions=(TopicPartition("x", 0), TopicPartition("t", 9))))
    assert [a.message for a in answers] == ["No such topic as x", "No such partition as t-9"]


def moved_away_and_lost(model: ClusterModel) -> None:
    """(0, 1) moves to (2, 3); 0 and 1 die, 2 leads and commits alone, and loses its session."""
    move(model, (2, 3))
    propose(model, 0, 1, 2)
    model.lose(0, 1)
    partition = model.partition("t")
    assert (partition.leader, partition.isr) == (2, (2,))
    model.lose(2)
    model.register(0)
    model.register(1)
    partition = model.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (2,))


@pytest.mark.parametrize("target", [None, (0, 1), (1, 3)])
def test_the_only_complete_copy_is_not_moved_away_from(
    model: ClusterModel, target: tuple[int, ...] | None
) -> None:
    """Only replica 2 has everything that is committed: a move back or elsewhere would delete it."""
    moved_away_and_lost(model)
    before = model.partition("t")
    assert move(model, target).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert model.partition("t") == before
    model.register(2)
    assert model.partition("t").leader == 2, "nothing is lost"


def test_the_last_known_leader_is_a_complete_copy_too(model: ClusterModel) -> None:
    move(model, (2, 3))
    propose(model, 0, 1, 2)
    model.lose(0, 1)
    failed = frozenset({(model.topic_id("t"), 0)})
    model.do(ReplicasOffline(broker_id=2, broker_epoch=model.epoch(2), replicas=failed))
    before = model.partition("t")
    assert (before.isr, before.elr, before.last_known_elr) == ((), (), (2,))
    assert move(model, None).error is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert model.partition("t") == before


def test_a_move_is_taken_back_after_an_unclean_election_was_asked_for(model: ClusterModel) -> None:
    """The way out when the broker with the complete copy will never come back."""
    moved_away_and_lost(model)
    (answer,) = model.do(ElectLeaders(election_type=ElectionType.UNCLEAN, partitions=(T0,)))
    assert answer.error is ErrorCode.NONE
    assert move(model, None).error is ErrorCode.NONE
    partition = model.partition("t")
    assert (partition.replicas, partition.leader) == ((0, 1), 0)


def test_a_move_without_a_leader_is_taken_back_to_a_complete_copy(model: ClusterModel) -> None:
    move(model, (2, 3))
    model.lose(0, 1)
    partition = model.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (0, 1))
    assert move(model, None).error is ErrorCode.NONE
    assert model.partition("t").elr == (0, 1)
