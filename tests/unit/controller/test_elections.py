"""Elections after which other replicas may delete committed records, and leader epochs that are used once."""

import pytest

from headrace.controller.brokers import ElectOfflinePartitions
from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigWish
from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import ConfigKind
from headrace.ids import TopicPartition
from tests.unit.controller.cluster_model import ClusterModel
from tests.unit.controller.test_brokers import cluster, propose


def lossy(model: ClusterModel) -> tuple[int, int]:
    partition = model.partition("t")
    return partition.unclean_epoch, partition.crashed_epoch


def allow_unclean(model: ClusterModel) -> None:
    edit = ConfigEdit(key="unclean.leader.election.enable", value="true")
    model.do(AlterConfigs(wishes=(ConfigWish(kind=ConfigKind.TOPIC, name="t", edits=(edit,)),)))
    model.do(ElectOfflinePartitions())


def test_a_clean_election_gives_nothing_up() -> None:
    model = cluster(0, 1, 2)
    model.lose(0)
    assert lossy(model) == (-1, -1)
    model.register(0)
    model.lose(1, 2)
    model.register(2)
    assert lossy(model) == (-1, -1)


def test_an_unclean_election_counts_until_all_replicas_are_in_sync() -> None:
    model = cluster(0, 1, 2)
    propose(model, 0)
    model.lose(0)
    allow_unclean(model)
    elected = model.partition("t")
    assert lossy(model) == (elected.leader_epoch, -1)
    propose(model, 1, 2)
    model.lose(1)
    assert model.partition("t").leader == 2
    assert lossy(model) == (elected.leader_epoch, -1), "broker 0 has not been back"
    model.take_over()
    assert lossy(model) == (elected.leader_epoch, -1)
    model.register(0)
    model.register(1)
    propose(model, 0, 1, 2)
    assert lossy(model) == (-1, -1)


def test_so_does_one_that_an_operator_asks_for() -> None:
    model = cluster(0, 1, 2)
    propose(model, 0)
    model.lose(0)
    wish = ElectLeaders(election_type=ElectionType.UNCLEAN, partitions=(TopicPartition("t", 0),))
    model.do(wish)
    assert lossy(model) == (model.partition("t").leader_epoch, -1)


def test_a_last_leader_that_crashed_may_have_lost_the_end_of_its_epoch() -> None:
    model = cluster(0, 1, 2)
    model.lose(0)
    led = model.partition("t").leader_epoch
    model.lose(2)
    model.lose(1)
    model.register(0, clean=False)
    model.register(2, clean=False)
    model.register(1, clean=False)
    partition = model.partition("t")
    assert (partition.leader, lossy(model)) == (1, (-1, led))
    propose(model, 0, 1)
    assert lossy(model) == (-1, led), "broker 2 may have more"
    propose(model, 0, 1, 2)
    assert lossy(model) == (-1, -1)


def test_a_last_leader_that_crashes_again_without_loss_still_may_lack_the_end_of_the_earlier_epoch() -> (
    None
):
    model = cluster(0, 1, 2)
    model.lose(0)
    model.lose(2)
    first = model.partition("t").leader_epoch
    model.lose(1)
    model.register(1, clean=False)
    second = model.partition("t").leader_epoch
    assert second > first
    model.lose(1)
    model.register(1, clean=False)
    assert lossy(model) == (-1, second), "what was lost before belongs to an epoch below"


def test_a_last_leader_that_stopped_in_order_has_lost_nothing() -> None:
    model = cluster(0, 1, 2)
    model.lose(2)
    model.lose(1)
    model.lose(0)
    model.register(0)
    assert model.partition("t").leader == 0
    assert lossy(model) == (-1, -1)


def test_a_single_replica_has_nobody_who_could_have_more() -> None:
    model = cluster(0, factor=1)
    model.lose(0)
    model.register(0, clean=False)
    assert lossy(model) == (-1, -1)


@pytest.mark.parametrize("gap", [0, 7])
def test_each_controller_leaves_out_epochs_once(gap: int) -> None:
    """If a backup of the store is restored, other epochs are used than those since the backup."""
    model = cluster(0, 1, 2, partitions=2)
    model.machine.core.epoch_gap = gap
    model.lose(0)
    assert model.partition("t").leader_epoch == 1 + gap
    model.register(0)
    propose(model, 0, 1, 2)
    model.lose(1)
    assert model.partition("t").leader_epoch == 2 + gap
    model.take_over()
    model.machine.core.epoch_gap = gap
    model.lose(model.partition("t").leader)
    assert model.partition("t").leader_epoch == 3 + 2 * gap


def test_a_new_partition_begins_with_epoch_0() -> None:
    model = ClusterModel(0)
    model.machine.core.epoch_gap = 7
    model.do(CreateTopics(topics=(NewTopic(name="t"),)))
    assert model.partition("t").leader_epoch == 0


def test_an_unclean_election_is_noted_under_its_epoch() -> None:
    model = cluster(0, 1, 2)
    model.machine.core.epoch_gap = 7
    propose(model, 0)
    model.lose(0)
    allow_unclean(model)
    assert lossy(model) == (model.partition("t").leader_epoch, -1)


def test_the_last_epochs_are_remembered() -> None:
    model = cluster(0, 1, 2)
    model.machine.core.epoch_gap = 7
    for _ in range(12):
        leader = model.partition("t").leader
        model.lose(leader)
        model.register(leader)
        propose(model, 0, 1, 2)
    partition = model.partition("t")
    assert partition.former_epochs == tuple(
        range(partition.leader_epoch - 8, partition.leader_epoch)
    )
    model.take_over()
    assert model.partition("t").former_epochs == partition.former_epochs
