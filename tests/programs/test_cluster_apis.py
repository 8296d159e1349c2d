"""What single brokers of a cluster answer: to whom it matters, whether they lead, follow or control or not."""

import random
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from headrace.client.connection import Connection
from headrace.controller.cluster_state import ClusterState
from headrace.controller.values import ConfigKind
from headrace.testing.embedded_cluster import EmbeddedCluster
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import Request, Response
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.wire.messages.delete_topics import DeleteTopicsRequest
from headrace.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from headrace.wire.messages.find_coordinator import FindCoordinatorRequest
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from headrace.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from headrace.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from headrace.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.differential.requests import LATEST, batch, produce

R = TypeVar("R", bound=Response)

BROKERS = {1, 2, 3}
TOPIC, BROKER = 2, 4  # resource types
FETCH_VERSION = 11  # by name, with a rack


def ask(cluster: EmbeddedCluster, broker_id: int, request: Request[R], version: int) -> R:
    host, _, port = cluster.brokers[broker_id].bootstrap_servers.rpartition(":")
    with Connection(host, int(port)) as connection:
        return connection.send(request, version)


def others(*broker_ids: int) -> list[int]:
    return sorted(BROKERS - set(broker_ids))


def metadata(cluster: EmbeddedCluster, broker_id: int, topic: str) -> MetadataResponse:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    return ask(cluster, broker_id, request, 12)


def described(cluster: EmbeddedCluster, broker_id: int, topic: str) -> MetadataResponseTopic:
    (found,) = metadata(cluster, broker_id, topic).topics
    return found


def append(cluster: EmbeddedCluster, topic: str, *values: bytes, index: int = 0) -> None:
    request = produce(topic, batch(*values), partition=index)
    answer = ask(cluster, cluster.leader(topic, index), request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def fetched(
    cluster: EmbeddedCluster, broker_id: int, topic: str, offset: int, *, rack: str = ""
) -> PartitionData:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=5_000,  # a follower hears of the high watermark with its next fetch
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchTopic(topic=topic, partitions=[part])],
        rack_id=rack,
    )
    return ask(cluster, broker_id, request, FETCH_VERSION).responses[0].partitions[0]


# ---- any broker takes what the controller decides


def _has_three_partitions(topic: str, state: ClusterState) -> bool:
    return state.partition(topic, 2) is not None


def test_topics_come_grow_and_go_through_any_broker(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    for broker_id in sorted(BROKERS):
        name = f"through-{broker_id}"
        wanted = CreatableTopic(name=name, num_partitions=2, replication_factor=2)
        created = ask(
            cluster, broker_id, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7
        )
        assert [(one.error_code, one.num_partitions) for one in created.topics] == [(0, 2)]
        more = CreatePartitionsTopic(name=name, count=3, assignments=None)
        grown = ask(
            cluster, broker_id, CreatePartitionsRequest(topics=[more], timeout_ms=10_000), 3
        )
        assert [one.error_code for one in grown.results] == [0]
        cluster.wait_until(partial(_has_three_partitions, name))
        again = ask(cluster, broker_id, CreateTopicsRequest(topics=[wanted], timeout_ms=10_000), 7)
        assert again.topics[0].error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        gone = ask(
            cluster, broker_id, DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000), 5
        )
        assert [one.error_code for one in gone.responses] == [0]
    cluster.wait_until(lambda state: not state.topics)


def test_all_brokers_tell_the_same(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", partitions=3)
    answers = [metadata(cluster, broker_id, "a") for broker_id in sorted(BROKERS)]
    assert answers[0] == answers[1] == answers[2]
    assert {broker.node_id for broker in answers[0].brokers} == BROKERS
    assert answers[0].controller_id == cluster.controller()
    for partition in answers[0].topics[0].partitions:
        assert set(partition.replica_nodes) == set(partition.isr_nodes) == BROKERS
        assert partition.leader_id == partition.replica_nodes[0]
        assert list(partition.offline_replicas) == []


def test_metadata_tells_who_is_gone(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", partitions=3)
    cluster.create_topic("alone", replication_factor=1)
    victim = cluster.leader("alone")
    cluster.kill(victim)
    cluster.wait_until(
        lambda state: (
            state.topics["alone"].partitions[0].leader == -1 and victim not in state.brokers
        )
    )
    for broker_id in others(victim):
        answer = metadata(cluster, broker_id, "a")
        assert {broker.node_id for broker in answer.brokers} == BROKERS - {victim}
        for partition in answer.topics[0].partitions:
            assert partition.error_code == 0
            assert set(partition.replica_nodes) == BROKERS
            assert set(partition.isr_nodes) == BROKERS - {victim}
            assert list(partition.offline_replicas) == [victim]
            assert partition.leader_id in partition.isr_nodes
        (alone,) = described(cluster, broker_id, "alone").partitions
        assert alone.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert (alone.leader_id, list(alone.offline_replicas)) == (-1, [victim])


def test_one_coordinator_whoever_is_asked(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["one", "two", "three"])
    ask(cluster, 1, request, 4)
    cluster.wait_until(lambda state: "__consumer_offsets" in state.topics)
    answers = [ask(cluster, broker_id, request, 4) for broker_id in sorted(BROKERS)]
    assert answers[0] == answers[1] == answers[2]
    ports = {int(one.bootstrap_servers.rpartition(":")[2]) for one in cluster.brokers.values()}
    for coordinator in answers[0].coordinators:
        assert coordinator.error_code == 0
        assert coordinator.port in ports


# ---- only the leader answers for a partition


def test_offsets_are_the_leaders_to_tell(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a")
    append(cluster, "a", b"one", b"two")
    leader = cluster.leader("a")
    offsets = ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name="a", partitions=[ListOffsetsPartition(partition_index=0, timestamp=LATEST)]
            )
        ],
    )
    epochs = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic="a", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
            )
        ],
    )
    found = ask(cluster, leader, offsets, 7).topics[0].partitions[0]
    assert (found.error_code, found.offset) == (0, 2)
    end = ask(cluster, leader, epochs, 4).topics[0].partitions[0]
    assert (end.error_code, end.leader_epoch, end.end_offset) == (0, 0, 2)
    for broker_id in others(leader):
        refused = ask(cluster, broker_id, offsets, 7).topics[0].partitions[0]
        assert refused.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        unknown = ask(cluster, broker_id, epochs, 4).topics[0].partitions[0]
        assert unknown.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        produced = ask(cluster, broker_id, produce("a", batch(b"x")), 9)
        assert (
            produced.responses[0].partition_responses[0].error_code
            == ErrorCode.NOT_LEADER_OR_FOLLOWER
        )


def test_log_directories_hold_what_is_hosted(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", partitions=3, replication_factor=2)
    for broker_id in sorted(BROKERS):
        answer = ask(cluster, broker_id, DescribeLogDirsRequest(topics=None), 4)
        (directory,) = answer.results
        shown = {
            one.partition_index
            for topic in directory.topics
            if topic.name == "a"
            for one in topic.partitions
        }
        assert shown == {
            index for index in range(3) if broker_id in cluster.partition("a", index).replicas
        }


# ---- leaders and replicas move


def test_preferred_leaders_are_elected_through_any_broker(
    headrace_cluster: EmbeddedCluster,
) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a")
    preferred = cluster.leader("a")
    cluster.stop(preferred)
    cluster.start(preferred)
    cluster.wait_until_in_sync()
    assert cluster.leader("a") != preferred
    request = ElectLeadersRequest(
        election_type=0,
        topic_partitions=[TopicPartitions(topic="a", partitions=[0])],
        timeout_ms=10_000,
    )
    through = others(cluster.controller())[0]
    (result,) = ask(cluster, through, request, 2).replica_election_results
    assert [one.error_code for one in result.partition_result] == [0]
    cluster.wait_until(lambda state: state.topics["a"].partitions[0].leader == preferred)


def move(cluster: EmbeddedCluster, through: int, target: Sequence[int] | None) -> int:
    part = ReassignablePartition(partition_index=0, replicas=target)
    request = AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="a", partitions=[part])], timeout_ms=10_000
    )
    answer = ask(cluster, through, request, 1)
    assert answer.error_code == 0
    return answer.responses[0].partitions[0].error_code


def test_a_partition_moves_with_all_it_has(headrace_cluster: EmbeddedCluster) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", replication_factor=1)
    append(cluster, "a", b"one", b"two")
    source = cluster.leader("a")
    target = others(source)
    through = others(cluster.controller())[0]
    assert move(cluster, through, target) == 0
    cluster.wait_until(
        lambda state: (
            state.topics["a"].partitions[0].replicas == tuple(target)
            and not state.topics["a"].partitions[0].is_reassigning
        )
    )
    listed = ask(cluster, through, ListPartitionReassignmentsRequest(topics=None), 0)
    assert list(listed.topics) == []
    leader = cluster.leader("a")
    assert leader in target
    append(cluster, "a", b"three")
    assert fetched(cluster, leader, "a", 0).high_watermark == 3
    deadline = time.monotonic() + 10
    while list(Path(cluster.brokers[source].data_directory).glob("a-0*")):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_move_to_a_dead_broker_waits_and_is_taken_back(
    headrace_cluster: EmbeddedCluster,
) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", replication_factor=1)
    source = cluster.leader("a")
    dead, through = others(source)
    assert move(cluster, through, [dead]) == 0
    cluster.wait_until(lambda state: state.topics["a"].partitions[0].replicas == (dead,))
    cluster.kill(dead)
    cluster.wait_until(lambda state: dead not in state.brokers)
    assert move(cluster, through, [source]) == 0
    (moving,) = ask(cluster, through, ListPartitionReassignmentsRequest(topics=None), 0).topics
    (partition,) = moving.partitions
    assert (list(partition.adding_replicas), list(partition.removing_replicas)) == (
        [source],
        [dead],
    )
    assert move(cluster, through, None) == 0
    assert move(cluster, through, None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def set_config(cluster: EmbeddedCluster, kind: int, name: str, **values: str | None) -> None:
    entries = [
        AlterableConfig(
            name=key.replace("_", "."), config_operation=0 if value is not None else 1, value=value
        )
        for key, value in values.items()
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert [one.error_code for one in ask(cluster, 1, request, 1).responses] == [0]


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_copy_takes_its_time(headrace_cluster: EmbeddedCluster, side: str) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a", replication_factor=1)
    source = cluster.leader("a")
    target = others(source)[0]
    for _ in range(4):
        append(cluster, "a", random.randbytes(600_000))
    rate, replicas = f"{side}_replication_throttled_rate", f"{side}_replication_throttled_replicas"
    set_config(cluster, BROKER, "", **{rate: "1"})
    set_config(cluster, TOPIC, "a", **{replicas: "*"})
    cluster.wait_until(lambda state: (ConfigKind.TOPIC, "a") in state.configs)
    try:
        assert move(cluster, others(source)[0], [target]) == 0
        with pytest.raises(TimeoutError):
            cluster.wait_until(
                lambda state: not state.topics["a"].partitions[0].is_reassigning, timeout_s=1.5
            )
    finally:
        set_config(cluster, BROKER, "", **{rate: None})
    cluster.wait_until(lambda state: state.topics["a"].partitions[0].replicas == (target,))
    assert fetched(cluster, target, "a", 3).high_watermark == 4


# ---- consumers read nearby


@pytest.fixture(scope="module")
def racks() -> Iterator[EmbeddedCluster]:
    """Three brokers in two racks, that send consumers to a replica in theirs."""
    settings = {
        "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    }
    with EmbeddedCluster(settings, racks=("east", "west", "west")) as cluster:
        yield cluster


@pytest.fixture
def rack_cluster(racks: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    yield racks
    racks.reset()


def test_a_consumer_is_sent_to_a_replica_in_its_rack(rack_cluster: EmbeddedCluster) -> None:
    cluster = rack_cluster
    cluster.create_topic("a")
    append(cluster, "a", b"one", b"two")
    leader = cluster.leader("a")
    rack = {1: "east", 2: "west", 3: "west"}
    near = fetched(cluster, leader, "a", 0, rack=rack[leader])
    assert (near.preferred_read_replica, bool(near.records)) == (-1, True)
    strange = fetched(cluster, leader, "a", 0, rack="north")
    assert (strange.preferred_read_replica, bool(strange.records)) == (-1, True)
    silent = fetched(cluster, leader, "a", 0)
    assert (silent.preferred_read_replica, bool(silent.records)) == (-1, True)
    other = "west" if rack[leader] == "east" else "east"
    sent = fetched(cluster, leader, "a", 0, rack=other)
    assert (sent.error_code, bool(sent.records), sent.high_watermark) == (0, False, 2)
    assert rack[sent.preferred_read_replica] == other
    there = fetched(cluster, sent.preferred_read_replica, "a", 0, rack=other)
    assert bytes(there.records or b"") == bytes(near.records or b"x")
    # Nobody is sent where the offset has not arrived.
    assert fetched(cluster, leader, "a", 3, rack=other).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_without_a_selector_everybody_reads_from_the_leader(
    headrace_cluster: EmbeddedCluster,
) -> None:
    cluster = headrace_cluster
    cluster.create_topic("a")
    append(cluster, "a", b"one")
    answer = fetched(cluster, cluster.leader("a"), "a", 0, rack="anywhere")
    assert (answer.preferred_read_replica, bool(answer.records)) == (-1, True)
