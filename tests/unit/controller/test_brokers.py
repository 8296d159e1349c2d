"""What becomes of partitions when brokers go, come back, and ask to go."""

import pytest

from headrace.controller.brokers import ControlledShutdown, ElectOfflinePartitions
from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigWish
from headrace.controller.isr import AlterPartition, IsrMember, IsrProposal
from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import NO_LEADER, ConfigKind
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel


def cluster(*brokers: int, factor: int = 3, min_isr: int = 1, partitions: int = 1) -> ClusterModel:
    model = ClusterModel(*brokers)
    topic = NewTopic(
        name="t",
        num_partitions=partitions,
        replication_factor=factor,
        configs={"min.insync.replicas": str(min_isr)},
    )
    (answer,) = model.do(CreateTopics(topics=(topic,)))
    assert answer.error is ErrorCode.NONE
    return model


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
    return answer.partitions[0].error


def test_the_first_living_member_of_the_isr_takes_over() -> None:
    model = cluster(0, 1, 2)
    assert model.partition("t").leader == 0
    model.lose(0)
    partition = model.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (1, 2))
    model.lose(2)
    partition = model.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (1,))


def test_a_stale_replica_is_not_elected_unless_allowed() -> None:
    model = cluster(0, 1, 2)
    propose(model, 0)
    model.lose(0)
    assert model.partition("t").leader == NO_LEADER
    edit = ConfigEdit(key="unclean.leader.election.enable", value="true")
    model.do(AlterConfigs(wishes=(ConfigWish(kind=ConfigKind.TOPIC, name="t", edits=(edit,)),)))
    model.do(ElectOfflinePartitions())
    partition = model.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())


def test_the_last_replica_standing_is_not_trusted_after_a_power_loss() -> None:
    """KIP-966: ISR {0, 1} shrinks to {0} below min ISR 2, so that 1 still has all that is committed."""
    model = cluster(0, 1, 2, min_isr=2)
    propose(model, 0, 1)
    model.lose(1)
    partition = model.partition("t")
    assert (partition.isr, partition.elr) == ((0,), (1,))
    model.lose(0)
    partition = model.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (NO_LEADER, (), (0, 1))
    model.register(0, clean=False)
    assert model.partition("t").leader == NO_LEADER, "it may have lost what was committed"
    model.register(2, clean=True)
    assert model.partition("t").leader == NO_LEADER, "it left while others went on"
    model.register(1, clean=True)
    partition = model.partition("t")
    assert (partition.leader, partition.isr) == (1, (1,))


def test_when_nobody_is_trusted_the_last_leader_is() -> None:
    model = cluster(0, 1, factor=2, min_isr=2)
    model.lose(1)
    model.lose(0)
    model.register(1, clean=False)
    assert model.partition("t").leader == NO_LEADER
    model.register(0, clean=False)
    assert model.partition("t").leader == 0


@pytest.mark.parametrize("clean", [True, False])
def test_a_single_broker_never_leads_in_the_same_epoch_after_a_restart(clean: bool) -> None:
    """KAFKA-10527."""
    model = cluster(0, factor=1)
    for epoch in (1, 2):
        model._register(0, clean=clean)
        model.take_over()
        partition = model.partition("t")
        assert (partition.leader, partition.leader_epoch, partition.isr) == (0, epoch, (0,))
    model.take_over()
    assert model.partition("t").leader_epoch == 2, "the same incarnation keeps its epoch"


def test_a_restart_that_nobody_noticed_is_one_all_the_same() -> None:
    model = cluster(0, 1, 2)
    model.register(0)
    partition = model.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (1, 2))


def test_a_restarted_follower_leaves_the_isr() -> None:
    """KIP-903: it may have come back with an empty disk."""
    model = cluster(0, 1, 2)
    model.register(2, clean=False)
    partition = model.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (0, 0, (0, 1))


def test_all_die_and_come_back_in_any_order() -> None:
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        model = cluster(0, 1, 2, min_isr=2)
        model.lose(0, 1, 2)
        for broker in order:
            model.register(broker, clean=False)
        assert model.partition("t").leader != NO_LEADER
        model.check()


def test_a_broker_that_wants_to_stop_is_relieved_of_its_leaderships() -> None:
    model = cluster(0, 1, 2, partitions=3)
    answer = model.do(ControlledShutdown(broker_id=0, broker_epoch=model.epoch(0)))
    assert (answer.error, answer.remaining) == (ErrorCode.NONE, ())
    for index in range(3):
        partition = model.partition("t", index)
        assert 0 not in partition.isr
        assert partition.leader != 0
    assert model.partition("t", 0).leader_epoch == 1
    assert model.partition("t", 1).leader_epoch == 0
    model.lose(1, 2)
    assert model.partition("t").leader == NO_LEADER, "it is going"
    model.register(0)
    assert model.partition("t").leader == NO_LEADER, "it left cleanly, but others went on since"


def test_what_nobody_else_can_lead_stays_and_is_named() -> None:
    model = cluster(0, factor=1)
    answer = model.do(ControlledShutdown(broker_id=0, broker_epoch=model.epoch(0)))
    assert answer.remaining == (TopicPartition("t", 0),)
    assert model.partition("t").leader == 0


def test_the_shutdown_of_an_old_incarnation_is_refused() -> None:
    model = cluster(0, 1, 2)
    old = model.epoch(0)
    model.register(0)
    answer = model.do(ControlledShutdown(broker_id=0, broker_epoch=old))
    assert answer.error is ErrorCode.STALE_BROKER_EPOCH
    answer = model.do(ControlledShutdown(broker_id=9, broker_epoch=1))
    assert answer.error is ErrorCode.BROKER_NOT_AVAILABLE


def everyone_died() -> ClusterModel:
    """Three replicas, broker 0 led, and nobody is left; two must be in sync."""
    model = cluster(0, 1, 2, min_isr=2)
    model.lose(0, 1, 2)
    return model


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (1, 0, 2)])
def test_a_last_leader_that_lost_its_disk_is_not_elected(order: tuple[int, ...]) -> None:
    model = everyone_died()
    for broker in order:
        model.register(broker, clean=False, directories=("new",) if broker == 0 else None)
    partition = model.partition("t")
    assert (partition.leader, partition.isr, partition.emptied) == (NO_LEADER, (), (0,))
    model.check()
    # Not after another restart of the same, now old, empty disk either; nor by another controller.
    model.lose(0)
    model.register(0, clean=False, directories=("new",))
    model.take_over()
    assert model.partition("t").leader == NO_LEADER
    # When the operator gives up what may be lost, the replicas that kept their disks come first.
    elect = ElectLeaders(partitions=(TopicPartition("t", 0),), election_type=ElectionType.UNCLEAN)
    model.do(elect)
    partition = model.partition("t")
    assert (partition.leader, partition.emptied) == (1, ())


def test_a_disk_lost_before_its_broker_is_missed() -> None:
    model = cluster(0, 1, 2, min_isr=2)
    model.lose(1)
    model.lose(2)
    model.register(0, clean=False, directories=("new",))
    for broker in (1, 2):
        model.register(broker, clean=False)
    assert model.partition("t").leader == NO_LEADER


def test_a_last_leader_with_its_disk_is_elected() -> None:
    model = everyone_died()
    for broker in (1, 2, 0):
        model.register(broker, clean=False)
    assert model.partition("t").leader == 0


def test_a_directory_that_cannot_be_opened_is_not_lost() -> None:
    model = cluster(1, 2, min_isr=2, factor=2)
    model.lose(2)
    model.register(1, clean=False, directories=("disk-1", "second"))
    model.lose(1)
    model.register(2, clean=False)
    model.register(1, clean=False, directories=("disk-1",), offline_directories=1)
    assert model.partition("t").leader == 1
    # It is replaced now.
    model.lose(1)
    model.register(1, clean=False, directories=("disk-1", "third"))
    assert model.partition("t").leader == NO_LEADER
    model.check()


def test_a_broker_that_does_not_name_its_directories_is_trusted_as_before() -> None:
    model = everyone_died()
    for broker in (1, 2, 0):
        model.register(broker, clean=False, directories=())
    assert model.partition("t").leader == 0


def test_the_only_replica_leads_on_a_new_disk() -> None:
    model = cluster(0, factor=1)
    model.lose(0)
    model.register(0, clean=False, directories=("new",))
    assert model.partition("t").leader == 0
