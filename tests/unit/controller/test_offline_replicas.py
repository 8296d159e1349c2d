"""What becomes of partitions when a living broker loses a disk."""

from headrace.controller.brokers import ControlledShutdown
from headrace.controller.controller_requests import (
    decode_answer,
    decode_event,
    encode_answer,
    encode_event,
)
from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.controller.offline_replicas import ReplicasOffline
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.controller.values import NO_LEADER
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel


def cluster(*brokers: int, factor: int = 3, min_isr: int = 1, partitions: int = 2) -> ClusterModel:
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


def tell(model: ClusterModel, broker_id: int, *indexes: int, epoch: int | None = None) -> ErrorCode:
    topic_id = model.topic_id("t")
    return model.do(
        ReplicasOffline(
            broker_id=broker_id,
            broker_epoch=model.epoch(broker_id) if epoch is None else epoch,
            replicas=frozenset((topic_id, index) for index in indexes),
        )
    )


def test_what_a_failed_disk_led_is_led_elsewhere_and_nothing_else_changes() -> None:
    model = cluster(0, 1, 2)
    other = model.partition("t", 1)
    assert model.partition("t").leader == 0
    assert tell(model, 0, 0) is ErrorCode.NONE
    partition = model.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (1, 1, (1, 2))
    assert model.partition("t", 1) == other
    assert model.replica.offline_replicas() == {(model.topic_id("t"), 0): {0}}


def test_a_follower_with_a_failed_disk_leaves_the_isr_without_an_election() -> None:
    model = cluster(0, 1, 2)
    tell(model, 2, 0)
    partition = model.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.isr) == (0, 0, (0, 1))


def test_telling_the_same_again_changes_nothing() -> None:
    model = cluster(0, 1, 2)
    tell(model, 0, 0)
    before = model.partition("t")
    assert tell(model, 0, 0) is ErrorCode.NONE
    assert model.partition("t") == before


def test_a_former_incarnation_is_not_listened_to() -> None:
    model = cluster(0, 1, 2)
    epoch = model.epoch(0)
    model.lose(0)
    model.register(0)
    before = model.partition("t")
    assert tell(model, 0, 0, epoch=epoch) is ErrorCode.STALE_BROKER_EPOCH
    assert model.partition("t") == before


def test_the_only_replica_is_nobodys_to_lead_until_its_broker_says_that_it_is_back() -> None:
    model = cluster(0, factor=1)
    tell(model, 0, 0)
    assert model.partition("t").leader == NO_LEADER
    model.register(5)  # whoever comes or goes: a broker that cannot use its replica is no candidate
    assert model.partition("t").leader == NO_LEADER
    answers = model.do(
        ElectLeaders(election_type=ElectionType.UNCLEAN, partitions=(TopicPartition("t", 0),))
    )
    assert [each.error for each in answers] == [ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE]
    assert tell(model, 0) is ErrorCode.NONE
    partition = model.partition("t")
    assert (partition.leader, partition.isr) == (0, (0,))


def test_a_broker_that_comes_back_is_asked_afresh() -> None:
    model = cluster(0, factor=1)
    tell(model, 0, 0)
    model.lose(0)
    model.register(0)
    assert model.partition("t").leader == 0, "it may have a new disk; it will say so if not"


def test_a_replica_lost_with_its_disk_is_not_eligible() -> None:
    model = cluster(0, 1, factor=2, min_isr=2)
    tell(model, 0, 0)
    partition = model.partition("t")
    assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())


def test_the_next_controller_learns_it_by_being_told_again() -> None:
    model = cluster(0, 1, 2)
    tell(model, 0, 0)
    model.take_over()
    assert model.machine.core.state.offline_replicas() == {}
    assert model.partition("t").leader == 1, "what was decided stays decided"
    assert tell(model, 0, 0) is ErrorCode.NONE
    assert model.partition("t").leader == 1


def test_a_broker_that_shuts_down_keeps_what_it_said() -> None:
    model = cluster(0, 1, 2)
    tell(model, 0, 0)
    model.do(ControlledShutdown(broker_id=0, broker_epoch=model.epoch(0)))
    broker = model.machine.core.state.brokers[0]
    assert broker.shutting_down
    assert broker.offline


def test_it_travels() -> None:
    model = cluster(0, factor=1)
    event = ReplicasOffline(
        broker_id=0, broker_epoch=7, replicas=frozenset({(model.topic_id("t"), 1)})
    )
    assert decode_event(*encode_event(event)) == event
    assert decode_answer("ReplicasOffline", encode_answer(ErrorCode.NONE)) is ErrorCode.NONE
