"""The controller owns the effective min.insync.replicas of a partition; changing it re-derives the eligible leaders."""

import msgspec
import pytest

from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigOperation, ConfigWish
from headrace.controller.core import ControllerSettings
from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.controller.isr import AlterPartition, IsrMember, IsrProposal
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import ALL_BROKERS, NO_LEADER, ConfigKind, PartitionState
from headrace.coordination.nodes import ConfigNode, PartitionStateNode
from headrace.coordination.store import Node
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel

MIN_ISR = "min.insync.replicas"
PATH = PartitionStateNode.path("t", 0)


def cluster(*, own: int | None = None, default: int = 1, factor: int = 2) -> ClusterModel:
    """Three brokers, one topic, with a min.insync.replicas of its own or the default of the controller's broker."""
    model = ClusterModel(0, 1, 2)
    model.settings = ControllerSettings(min_insync_replicas=default)
    model.take_over()
    topic = NewTopic(
        name="t",
        num_partitions=1,
        replication_factor=factor,
        configs={} if own is None else {MIN_ISR: str(own)},
    )
    (answer,) = model.do(CreateTopics(topics=(topic,)))
    assert answer.error is ErrorCode.NONE
    return model


def wish(
    value: int | None, *, kind: ConfigKind = ConfigKind.TOPIC, name: str = "t"
) -> AlterConfigs:
    if value is None:
        edit = ConfigEdit(key=MIN_ISR, operation=ConfigOperation.DELETE)
    else:
        edit = ConfigEdit(key=MIN_ISR, value=str(value))
    return AlterConfigs(wishes=(ConfigWish(kind=kind, name=name, edits=(edit,)),))


def default(value: int | None) -> AlterConfigs:
    return wish(value, kind=ConfigKind.BROKER, name=ALL_BROKERS)


def elr_of(partition: PartitionState) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return partition.min_isr, partition.isr, partition.elr


def test_lowering_the_minimum_makes_nobody_eligible_who_is_not_in_sync() -> None:
    """The leader commits alone from now on: what it commits, the follower that left never had."""
    model = cluster(own=2)
    model.lose(1)
    assert elr_of(model.partition("t")) == (2, (0,), (1,))
    before = model.partition("t").partition_epoch
    model.do(wish(1))
    model.check()
    partition = model.partition("t")
    assert elr_of(partition) == (1, (0,), ())
    assert partition.partition_epoch == before + 1, "one write"
    model.lose(0)
    model.register(1)
    assert model.partition("t").leader == NO_LEADER


@pytest.mark.parametrize("change", [wish(None), default(1)])
def test_every_layer_that_lowers_it_counts(change: AlterConfigs) -> None:
    is_topic = change.wishes[0].kind is ConfigKind.TOPIC
    model = cluster(own=2 if is_topic else None, default=1 if is_topic else 2)
    model.lose(1)
    assert elr_of(model.partition("t")) == (2, (0,), (1,))
    model.do(change)
    assert elr_of(model.partition("t")) == (1, (0,), ())
    model.check()


def test_a_default_does_not_touch_topics_with_a_minimum_of_their_own() -> None:
    model = cluster(own=2)
    model.lose(1)
    before = model.partition("t")
    model.do(default(1))
    assert model.partition("t") == before


def test_a_lower_minimum_that_is_still_not_reached_keeps_the_eligible() -> None:
    """Below both minima nothing is committed: who left the ISR still has all that is."""
    model = cluster(own=3, factor=3)
    model.lose(1, 2)
    assert elr_of(model.partition("t")) == (3, (0,), (1, 2))
    model.do(wish(2))
    assert elr_of(model.partition("t")) == (2, (0,), (1, 2))


def test_raising_the_minimum_makes_nobody_eligible() -> None:
    model = cluster(own=1)
    model.lose(1)
    model.do(wish(2))
    assert elr_of(model.partition("t")) == (2, (0,), ()), "the leader went on alone meanwhile"
    model.lose(0)
    model.register(1)
    assert model.partition("t").leader == NO_LEADER


def test_a_proposal_made_under_the_old_minimum_is_refused() -> None:
    model = cluster(own=2)
    old = model.partition("t")
    model.do(wish(1))
    proposal = IsrProposal(
        topic_id=model.topic_id("t"),
        partition=0,
        leader_epoch=old.leader_epoch,
        partition_epoch=old.partition_epoch,
        new_isr=(IsrMember(broker_id=0),),
    )
    answer = model.do(
        AlterPartition(broker_id=0, broker_epoch=model.epoch(0), proposals=(proposal,))
    )
    assert answer.partitions[0].error is ErrorCode.INVALID_UPDATE_VERSION


def test_a_controller_with_another_default_writes_it_before_anyone_leads_by_it() -> None:
    model = cluster(default=2)
    model.lose(1)
    assert elr_of(model.partition("t")) == (2, (0,), (1,))
    model.settings = ControllerSettings(min_insync_replicas=1)
    model.take_over()
    assert elr_of(model.partition("t")) == (1, (0,), ())
    model.settings = ControllerSettings(min_insync_replicas=2)
    model.take_over()
    assert elr_of(model.partition("t")) == (2, (0,), ())
    model.check()


def test_a_state_without_a_minimum_has_no_eligible_leaders() -> None:
    """Nobody knows by which minimum its leader committed."""
    model = cluster(own=2)
    model.lose(1)
    node = model.nodes[PATH]
    state = PartitionStateNode.decode(PATH, node.data)
    without = msgspec.structs.replace(state, min_isr=0).encode()
    assert b"min_isr" not in without
    model.nodes[PATH] = Node(without, node.version, node.created_txn)
    model.take_over()
    assert elr_of(model.partition("t")) == (2, (0,), ())


def test_every_crash_while_a_change_is_written_is_safe() -> None:
    """Each partition's minimum and its eligible leaders are one node; the next controller writes the rest."""
    for groups in range(5):
        model = cluster(own=2)
        model.do(CreatePartitions(topics=(MorePartitions(name="t", count=3),)))
        for broker in (0, 1, 2):
            model.lose(broker)
            model.register(broker)
        model.crash_after(wish(1), groups)
        wanted = int(model.state.config(ConfigKind.TOPIC, "t")[MIN_ISR])
        assert wanted == (1 if groups else 2)
        for partition in model.state.topics["t"].partitions:
            assert partition.min_isr == wanted
            assert not partition.elr or len(partition.isr) < partition.needed_isr
        model.check()


def test_new_partitions_have_the_topics_minimum() -> None:
    model = cluster(own=2)
    model.do(CreatePartitions(topics=(MorePartitions(name="t", count=2),)))
    assert [each.min_isr for each in model.state.topics["t"].partitions] == [2, 2]


def test_validating_writes_nothing() -> None:
    model = cluster(own=2)
    before = dict(model.nodes)
    model.do(msgspec.structs.replace(wish(1), validate_only=True))
    assert model.nodes == before


@pytest.mark.parametrize("value", ["two", "", "0", "-1"])
def test_a_value_that_makes_no_sense_is_passed_over(value: str) -> None:
    """Written into the store by hand: it must not stop the controller."""
    model = cluster(own=2, default=3)
    path = ConfigNode.path("topics", "t")
    node = model.nodes[path]
    model.nodes[path] = Node(ConfigNode({MIN_ISR: value}).encode(), node.version, node.created_txn)
    model.take_over()
    assert model.partition("t").min_isr == 3


def test_whoever_is_told_no_minimum_needs_all_replicas() -> None:
    """An older controller does not write it; its eligible leaders may rest on any."""
    assert PartitionState((1, 2, 3)).needed_isr == 3
    assert PartitionState((1, 2, 3), min_isr=2).needed_isr == 2
    assert PartitionState((1,), min_isr=2).needed_isr == 1


def test_one_broker_cannot_have_a_minimum_of_its_own() -> None:
    """As in Kafka with eligible leader replicas: the minimum belongs to the partition, whoever leads it."""
    model = cluster()
    (answer,) = model.do(wish(2, kind=ConfigKind.BROKER, name="1"))
    assert answer.error is ErrorCode.INVALID_CONFIG
    assert "Broker-level min.insync.replicas" in str(answer.message)
