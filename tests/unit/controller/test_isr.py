"""Proposals of ISRs, and every way in which one is fenced."""

from uuid import UUID

import msgspec
import pytest

from headrace.controller.brokers import ControlledShutdown
from headrace.controller.isr import AlterPartition, AlterPartitionAnswer, IsrMember, IsrProposal
from headrace.controller.offline_replicas import ReplicasOffline
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel


@pytest.fixture
def model() -> ClusterModel:
    model = ClusterModel(0, 1, 2, 3)
    model.do(CreateTopics(topics=(NewTopic(name="t", assignments=((0, (0, 1, 2)),)),)))
    return model


def proposal(model: ClusterModel, *isr: int) -> IsrProposal:
    partition = model.partition("t")
    return IsrProposal(
        topic_id=model.topic_id("t"),
        partition=0,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr=tuple(IsrMember(broker_id=b, broker_epoch=model.epoch(b)) for b in isr),
    )


def send(model: ClusterModel, *proposals: IsrProposal, broker_id: int = 0) -> AlterPartitionAnswer:
    return model.do(
        AlterPartition(
            broker_id=broker_id, broker_epoch=model.epoch(broker_id), proposals=proposals
        )
    )


def refused(model: ClusterModel, wrong: IsrProposal, *, broker_id: int = 0) -> ErrorCode:
    before = model.partition("t")
    (answer,) = send(model, wrong, broker_id=broker_id).partitions
    assert model.partition("t") == before, "a refused proposal changes nothing"
    return answer.error


def test_a_proposal_is_taken_and_answered_with_the_new_state(model: ClusterModel) -> None:
    (answer,) = send(model, proposal(model, 0, 1)).partitions
    assert answer.error is ErrorCode.NONE
    assert answer.state == model.partition("t")
    assert answer.state.isr == (0, 1)
    assert (answer.state.leader_epoch, answer.state.partition_epoch) == (0, 1)
    (answer,) = send(model, proposal(model, 0, 1)).partitions
    assert answer.state is not None
    assert answer.state.partition_epoch == 1, "what is so already needs no write"


def test_fences(model: ClusterModel) -> None:
    model.lose(3)
    model.register(3)
    good = proposal(model, 0, 1)
    change = msgspec.structs.replace
    assert refused(model, change(good, leader_epoch=-1)) is ErrorCode.FENCED_LEADER_EPOCH
    assert refused(model, change(good, partition_epoch=-1)) is ErrorCode.INVALID_UPDATE_VERSION
    assert refused(model, change(good, leader_epoch=9)) is ErrorCode.NOT_CONTROLLER
    assert refused(model, change(good, partition_epoch=9)) is ErrorCode.NOT_CONTROLLER
    assert refused(model, good, broker_id=1) is ErrorCode.INVALID_REQUEST
    assert refused(model, change(good, topic_id=UUID(int=9))) is ErrorCode.UNKNOWN_TOPIC_ID
    assert refused(model, change(good, partition=7)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("isr", [(), (1, 2), (0, 3), (0, 1, 1)])
def test_an_impossible_isr(model: ClusterModel, isr: tuple[int, ...]) -> None:
    assert refused(model, proposal(model, *isr)) is ErrorCode.INVALID_REQUEST


def test_an_old_incarnation_cannot_enter(model: ClusterModel) -> None:
    """KIP-903: the request was on its way while the follower came back with an empty disk."""
    send(model, proposal(model, 0, 1))
    late = proposal(model, 0, 1, 2)
    model.register(2, clean=False)
    late = msgspec.structs.replace(late, partition_epoch=model.partition("t").partition_epoch)
    assert refused(model, late) is ErrorCode.INELIGIBLE_REPLICA


def test_brokers_that_are_gone_or_going_cannot_enter(model: ClusterModel) -> None:
    send(model, proposal(model, 0))
    epoch_of_2 = model.epoch(2)
    model.do(ControlledShutdown(broker_id=1, broker_epoch=model.epoch(1)))
    assert refused(model, proposal(model, 0, 1)) is ErrorCode.INELIGIBLE_REPLICA
    model.lose(2)
    gone = IsrMember(broker_id=2, broker_epoch=epoch_of_2)
    wanted = proposal(model, 0)
    wanted = msgspec.structs.replace(wanted, new_isr=(*wanted.new_isr, gone))
    assert refused(model, wanted) is ErrorCode.INELIGIBLE_REPLICA


def test_an_old_incarnation_of_the_leader_is_refused_as_a_whole(model: ClusterModel) -> None:
    old = AlterPartition(broker_id=0, broker_epoch=model.epoch(0), proposals=(proposal(model, 0),))
    model.register(0)
    assert model.do(old).error is ErrorCode.STALE_BROKER_EPOCH


def test_the_second_proposal_for_a_partition_in_one_request_is_obsolete(
    model: ClusterModel,
) -> None:
    (answer,) = send(model, proposal(model, 0, 1), proposal(model, 0)).partitions
    assert answer.error is ErrorCode.INVALID_UPDATE_VERSION


def test_a_replica_on_a_failed_disk_does_not_join(model: ClusterModel) -> None:
    def tell(replicas: frozenset[tuple[UUID, int]]) -> None:
        offline = ReplicasOffline(broker_id=2, broker_epoch=model.epoch(2), replicas=replicas)
        assert model.do(offline) is ErrorCode.NONE

    tell(frozenset({(model.topic_id("t"), 0)}))
    assert model.partition("t").isr == (0, 1)
    answer = send(model, proposal(model, 0, 1, 2))
    assert answer.partitions[0].error is ErrorCode.INELIGIBLE_REPLICA
    assert model.partition("t").isr == (0, 1)
    tell(frozenset())
    assert send(model, proposal(model, 0, 1, 2)).partitions[0].error is ErrorCode.NONE
