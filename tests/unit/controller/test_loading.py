"""What a controller makes of nodes that make no sense."""

import pytest

from headrace.controller.changes import ControllerElected
from headrace.controller.topics import CreateTopics, NewTopic
from headrace.coordination.nodes import PartitionStateNode, TopicNode
from headrace.coordination.store import Node
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel


def with_topics() -> ClusterModel:
    model = ClusterModel(1, 2)
    topics = tuple(
        NewTopic(name=name, num_partitions=2, replication_factor=2)
        for name in ("orders", "payments")
    )
    model.do(CreateTopics(topics=topics))
    return model


@pytest.mark.parametrize("path", [PartitionStateNode.path("orders", 1), TopicNode.path("orders")])
@pytest.mark.parametrize("data", [b"nonsense", b'{"version":99}'])
def test_a_topic_that_cannot_be_read_is_named_to_all_brokers(path: str, data: bytes) -> None:
    model = with_topics()
    model.nodes[path] = Node(data, 7, 1)
    model.take_over(faults=1)
    assert list(model.state.topics) == ["payments"]
    assert list(model.replica.unreadable_topics) == ["orders"]
    assert path in model.replica.unreadable_topics["orders"]
    election = model.replica.snapshot()[0]
    assert isinstance(election, ControllerElected)
    assert election.unreadable_topics == model.state.unreadable_topics
    (answer,) = model.do(CreateTopics(topics=(NewTopic(name="orders"),)))
    assert answer.error == ErrorCode.TOPIC_ALREADY_EXISTS
    assert path in (answer.message or "")


def test_a_topic_that_was_mended_is_there_again() -> None:
    model = with_topics()
    path = PartitionStateNode.path("orders", 0)
    before, good = tuple(model.state.topics["orders"].partitions), model.nodes[path]
    model.nodes[path] = Node(b"nonsense", good.version + 1, good.created_txn)
    model.take_over(faults=1)
    model.nodes[path] = Node(good.data, good.version + 2, good.created_txn)
    model.take_over()
    assert not model.replica.unreadable_topics
    assert model.partition("orders", 1) == before[1]
    assert model.partition("orders", 0).isr == before[0].isr
