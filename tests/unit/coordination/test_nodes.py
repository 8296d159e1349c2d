"""The nodes' bytes. The examples stand in docs/formats/znodes.md, which is read here."""

import re
from pathlib import Path
from uuid import UUID

import pytest

from headrace.coordination.nodes import (
    BrokerEpochNode,
    BrokerNode,
    BrokerSessionNode,
    ClusterIdNode,
    ConfigNode,
    ControllerEpochNode,
    ControllerNode,
    DeletedTopicNode,
    FeatureNode,
    MalformedNode,
    PartitionStateNode,
    ProducerIdBlockNode,
    SuspectNode,
    TopicNode,
)
from headrace.ids import text_of_id

TOPIC_ID = UUID("5d1ae0c6-3b1f-4a86-9d55-0f6c3a0b8e21")
BROKER = BrokerNode(
    listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
    endpoints=("PLAINTEXT://broker-1.example:9092",),
    host="broker-1.example",
    port=9092,
    timestamp="1700000000000",
    rack="r1",
    previous_broker_epoch=17,
    clean_since_epoch=9,
    incarnation="0b5f7a52-9f6f-4f0e-8f5b-0d9a3c0f6a11",
    directories=("vnLeD7r1T8yWq0uVTkW0Yw",),
)
TOPIC = TopicNode(text_of_id(TOPIC_ID), {0: (1, 2), 1: (3, 1, 2)}, {1: (3,)}, {1: (2,)})
STATE = PartitionStateNode(controller_epoch=4, leader=1, leader_epoch=7, isr=(1, 2), min_isr=1)
SHRUNK = PartitionStateNode(
    controller_epoch=4,
    leader=-1,
    leader_epoch=8,
    isr=(),
    elr=(2,),
    last_known_elr=(1,),
    emptied=(3,),
    min_isr=2,
    unclean_epoch=4,
    crashed_epoch=5,
    last_known_epoch=7,
    former_epochs=(3, 4, 5, 6, 7),
)
EXAMPLES = {
    BrokerNode.path(1): BROKER.encode(),
    BrokerSessionNode.path(1): BrokerSessionNode(BROKER.incarnation).encode(),
    BrokerEpochNode.path(1): BrokerEpochNode(42, ("vnLeD7r1T8yWq0uVTkW0Yw",)).encode(),
    ControllerNode.PATH: ControllerNode(1, "1700000000000").encode(),
    ControllerEpochNode.PATH: ControllerEpochNode.encode(4),
    ClusterIdNode.PATH: ClusterIdNode("XRrgxjsfSoadVQ9sOguOIQ").encode(),
    TopicNode.path("orders"): TOPIC.encode(),
    PartitionStateNode.path("orders", 0): STATE.encode(),
    PartitionStateNode.path("orders", 1): SHRUNK.encode(),
    ConfigNode.path("topics", "orders"): ConfigNode({"retention.ms": "60000"}).encode(),
    DeletedTopicNode.path(TOPIC_ID): DeletedTopicNode("orders", (1, 2)).encode(),
    FeatureNode.PATH: FeatureNode({"transaction.version": 2}).encode(),
    ProducerIdBlockNode.PATH: ProducerIdBlockNode.of(1, 2000, 1000).encode(),
}


def _documented() -> dict[str, bytes]:
    page = Path(__file__).parents[3] / "docs" / "formats" / "znodes.md"
    text = page.read_text(encoding="utf-8")
    return {
        path: data.encode() for path, data in re.findall(r"^    (/\S+) = (.+)$", text, re.MULTILINE)
    }


def test_the_examples_of_the_format_page_are_these_bytes() -> None:
    assert _documented() == EXAMPLES


def test_every_example_is_read_back() -> None:
    documented = _documented()
    assert BrokerNode.decode(1, documented[BrokerNode.path(1)]) == BROKER
    session = BrokerSessionNode.decode(1, documented[BrokerSessionNode.path(1)])
    assert session.incarnation == BROKER.incarnation
    assert BrokerEpochNode.decode(1, documented[BrokerEpochNode.path(1)]).epoch == 42
    assert ControllerNode.decode(documented[ControllerNode.PATH]).brokerid == 1
    assert ControllerEpochNode.decode(documented[ControllerEpochNode.PATH]) == 4
    assert ClusterIdNode.decode(documented[ClusterIdNode.PATH]).id == "XRrgxjsfSoadVQ9sOguOIQ"
    assert TopicNode.decode("orders", documented[TopicNode.path("orders")]) == TOPIC
    for index, state in enumerate((STATE, SHRUNK)):
        path = PartitionStateNode.path("orders", index)
        assert PartitionStateNode.decode(path, documented[path]) == state
    path = ConfigNode.path("topics", "orders")
    assert ConfigNode.decode(path, documented[path]).config == {"retention.ms": "60000"}
    path = DeletedTopicNode.path(TOPIC_ID)
    assert DeletedTopicNode.decode(path, documented[path]).pending == (1, 2)
    assert FeatureNode.decode(documented[FeatureNode.PATH]).features == {"transaction.version": 2}
    block = ProducerIdBlockNode.decode(documented[ProducerIdBlockNode.PATH])
    assert (block.block_start, block.next_start) == ("2000", 3000)


def test_reads_what_kafka_3_wrote() -> None:
    """Written by the controller of Kafka 3 with ZooKeeper, whose fields come in another order."""
    state = b'{"controller_epoch":1,"leader":0,"version":1,"leader_epoch":0,"isr":[0]}'
    assert PartitionStateNode.decode("/x", state).isr == (0,)
    topic = (
        b'{"removing_replicas":{},"partitions":{"0":[0]},"topic_id":"XRrgxjsfSoadVQ9sOguOIQ",'
        b'"adding_replicas":{},"version":3}'
    )
    assert TopicNode.decode("t", topic).partitions == {0: (0,)}
    broker = (
        b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        b'"endpoints":["PLAINTEXT://localhost:9092"],"jmx_port":-1,"port":9092,'
        b'"host":"localhost","version":5,"timestamp":"1700000000000"}'
    )
    assert BrokerNode.decode(0, broker).endpoints == ("PLAINTEXT://localhost:9092",)


@pytest.mark.parametrize(
    "data",
    [b"", b"garbage", b"{}", b'{"version":99,"leader":0}', b"[]", b'{"version":1,"leader":"x"}'],
)
def test_names_the_path_of_what_makes_no_sense(data: bytes) -> None:
    with pytest.raises(MalformedNode, match="/brokers/topics/t/partitions/0/state"):
        PartitionStateNode.decode(PartitionStateNode.path("t", 0), data)


def test_refuses_gaps_between_partitions_and_numbers_that_are_none() -> None:
    with pytest.raises(MalformedNode, match="without gap"):
        TopicNode.decode("t", b'{"version":3,"topic_id":"x","partitions":{"0":[1],"2":[1]}}')
    with pytest.raises(MalformedNode, match="/controller_epoch"):
        ControllerEpochNode.decode(b"-1")


def test_names_of_configs_are_written_as_in_an_address() -> None:
    assert ConfigNode.path("groups", "a/b c") == "/config/groups/a%2Fb%20c"
    assert ConfigNode.split("/config/groups/a%2Fb%20c") == ("groups", "a/b c")
    assert ConfigNode.path("brokers", "<default>") == "/config/brokers/<default>"


def test_a_suspicion_is_its_name() -> None:
    name = SuspectNode.path(2, 42, 1).rpartition("/")[2]
    assert SuspectNode.parse(name) == (2, 42, 1)
    for odd in ("", "2-42", "2-42-1-0", "2-x-1", "-2-42-1", "2--1"):
        assert SuspectNode.parse(odd) is None
