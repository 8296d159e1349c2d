"""What is kept of metadata, and for how long."""

from headrace.client.brokers import Brokers, parse_addresses
from headrace.client.cluster_metadata import NO_LEADER, ClusterMetadata
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.metadata import MetadataRequest
from headrace.wire.refusal import Refusal
from tests.unit.client.scripted_cluster import ScriptedCluster, ScriptedLink

ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def metadata_of(cluster: ScriptedCluster) -> ClusterMetadata[ScriptedLink]:
    brokers = Brokers(
        parse_addresses("b1:9092,b2:9092"), connect=cluster.connect, blocking_time=cluster.time
    )
    return ClusterMetadata(brokers, cluster.time)


def requests(cluster: ScriptedCluster) -> int:
    return len(cluster.brokers_asked(MetadataRequest))


def test_a_topic_is_asked_for_once_until_it_is_forgotten_or_old() -> None:
    cluster = ScriptedCluster((1, 2))
    cluster.leaders = {"orders": [1, 2]}
    metadata = metadata_of(cluster)
    assert [metadata.leader_of(each) for each in (ORDERS_0, ORDERS_1)] == [1, 2]
    assert requests(cluster) == 1
    cluster.leaders = {"orders": [2, -1]}
    assert metadata.leader_of(ORDERS_0) == 1
    metadata.forget("orders")
    assert [metadata.leader_of(each) for each in (ORDERS_0, ORDERS_1)] == [2, NO_LEADER]
    assert requests(cluster) == 2
    cluster.time.sleep(10)
    assert metadata.topic("orders", max_age_s=10) is not None
    assert requests(cluster) == 2
    cluster.time.sleep(0.1)
    assert metadata.topic("orders", max_age_s=10) is not None
    assert requests(cluster) == 3


def test_a_topic_that_is_unknown_for_a_moment_keeps_its_leaders() -> None:
    cluster = ScriptedCluster((1, 2))
    cluster.leaders = {"orders": [1]}
    metadata = metadata_of(cluster)
    metadata.topics(["orders"])
    cluster.leaders = {}
    assert metadata.topics(["orders"]) == {}
    assert metadata.leader_of(ORDERS_0) == 1


def test_leaders_of_many_partitions_with_one_request() -> None:
    cluster = ScriptedCluster((1, 2))
    cluster.leaders = {"orders": [1], "visits": [2, -1], "gone": [3]}
    metadata = metadata_of(cluster)
    visits_0, visits_1 = TopicPartition("visits", 0), TopicPartition("visits", 1)
    none, gone = TopicPartition("none", 0), TopicPartition("gone", 0)
    found = metadata.leaders_of([ORDERS_0, ORDERS_1, visits_0, visits_1, none, gone])
    unknown = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    no_leader = Refusal(ErrorCode.LEADER_NOT_AVAILABLE)
    assert found == {
        ORDERS_0: 1,
        ORDERS_1: unknown,
        visits_0: 2,
        visits_1: no_leader,
        none: unknown,
        gone: no_leader,  # its broker is not alive
    }
    assert requests(cluster) == 1


def test_a_partition_that_was_added_is_found() -> None:
    cluster = ScriptedCluster((1, 2))
    cluster.leaders = {"orders": [1]}
    metadata = metadata_of(cluster)
    metadata.leaders_of([ORDERS_0])
    cluster.leaders = {"orders": [1, 2]}
    assert metadata.leaders_of([ORDERS_0, ORDERS_1]) == {ORDERS_0: 1, ORDERS_1: 2}


def test_a_connection_that_was_closed_meanwhile_costs_one_more_try() -> None:
    cluster = ScriptedCluster((1, 2))
    metadata = metadata_of(cluster)
    assert set(metadata.cluster().nodes) == {1, 2}
    cluster.down = {1}
    assert set(metadata.cluster().nodes) == {1, 2}
    metadata.forget_cluster()
    assert set(metadata.cluster().nodes) == {2}
