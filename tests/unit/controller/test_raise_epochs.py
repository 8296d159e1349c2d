"""The controller raises leader epochs and producer ids above what a broker's logs have seen."""

from headrace.controller.controller_requests import (
    decode_answer,
    decode_event,
    encode_answer,
    encode_event,
)
from headrace.controller.producer_ids import AllocateProducerIds
from headrace.controller.raise_epochs import LogEpoch, RaiseEpochs
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel


def cluster() -> ClusterModel:
    model = ClusterModel(0, 1, 2)
    topic = NewTopic(name="t", num_partitions=2, replication_factor=3, configs={})
    (answer,) = model.do(CreateTopics(topics=(topic,)))
    assert answer.error is ErrorCode.NONE
    return model


def raised(
    model: ClusterModel, broker_id: int, leader_epoch: int, *, producer_id: int = -1, stale: int = 0
) -> ErrorCode:
    request = RaiseEpochs(
        broker_id=broker_id,
        broker_epoch=model.epoch(broker_id) - stale,
        logs=(LogEpoch(topic_id=model.topic_id("t"), partition=0, leader_epoch=leader_epoch),),
        first_producer_id=producer_id,
    )
    event = decode_event(*encode_event(request))
    answer: ErrorCode = decode_answer("RaiseEpochs", encode_answer(model.do(event)))
    return answer


def test_the_leader_goes_on_above_the_epochs_of_its_log() -> None:
    model = cluster()
    before, other = model.partition("t"), model.partition("t", 1)
    for log_epoch, expected in ((7, 8), (8, 9), (3, 9)):
        assert raised(model, before.leader, log_epoch) is ErrorCode.NONE
        partition = model.partition("t")
        assert partition.leader_epoch == expected
        assert (partition.leader, partition.isr) == (before.leader, before.isr)
    assert model.partition("t", 1) == other


def test_epochs_that_other_logs_may_hold_are_left_out() -> None:
    model = cluster()
    model.machine.core.epoch_gap = 100
    assert raised(model, model.partition("t").leader, 7) is ErrorCode.NONE
    assert model.partition("t").leader_epoch == 108


def test_only_the_leader_of_this_registration_is_heard() -> None:
    model = cluster()
    before = model.partition("t")
    follower = next(each for each in before.replicas if each != before.leader)
    assert raised(model, follower, 7) is ErrorCode.NONE
    assert raised(model, before.leader, 7, stale=1) is ErrorCode.STALE_BROKER_EPOCH
    assert model.partition("t") == before


def test_producer_ids_go_on_above_those_of_the_logs_and_never_fall() -> None:
    model = cluster()
    leader = model.partition("t").leader
    raised(model, leader, 7, producer_id=5_000_000)
    raised(model, leader, 7, producer_id=1_000)
    ask = AllocateProducerIds(broker_id=leader, broker_epoch=model.epoch(leader))
    assert model.do(ask).first == 5_000_000
