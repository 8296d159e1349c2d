"""From which replica a consumer is told to read. The rule is that of Kafka's RackAwareReplicaSelector."""

from uuid import UUID

import pytest

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.fetching.nearest_replica import NearestReplica
from headrace.controller.changes import BrokerRegistered, ChangeBatch
from headrace.controller.values import Broker, Endpoint, PartitionState
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.recovery import open_log
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch
from headrace.testing.memory_disk import MemoryDisk
from tests.differential.requests import batch

NOW_MS = 1_700_000_000_000
OWN_ID = 1
RACKS = {1: "east", 2: "west", 3: "west", 4: None, 5: "north"}


@pytest.fixture
def cluster() -> ClusterView:
    view = ClusterView(OWN_ID, "cluster", tells_dialled_address=False)
    view.apply(
        ChangeBatch(
            1,
            1,
            tuple(
                BrokerRegistered(
                    Broker(broker_id, 1, (Endpoint("INSIDE", "host", 9000 + broker_id),), rack)
                )
                for broker_id, rack in RACKS.items()
            ),
            is_snapshot=True,
        )
    )
    return view


@pytest.fixture
def partition() -> Partition:
    """Led by 1, with ten records; nobody has fetched yet."""
    where = TopicPartition("t", 0)
    disk = MemoryDisk(capacity_bytes=1 << 24)
    disk.make_directory("/data")
    log = open_log(disk, "/data/t-0", where, LogConfig(), now_ms=NOW_MS)
    partition = Partition(
        where,
        UUID(int=1),
        log,
        high_watermark=0,
        on_disk_failed=lambda partition, error: None,
    )
    state = PartitionState((1, 2, 3, 4, 5), (1, 2, 3, 4), OWN_ID, 0, 0)
    partition.become_leader(OWN_ID, state, now_ms=NOW_MS)
    records = bytearray(batch(*(b"%d" % number for number in range(10))))
    partition.append([records], acks=1, now_ms=NOW_MS)
    return partition


def fetches(partition: Partition, replica: int, offset: int, *, log_start: int = 0) -> None:
    """A follower asks from `offset` on."""
    ask = FollowerFetch(replica, 7, offset, -1, 0, log_start)
    partition.read_as_leader(ask, 1 << 20, now_ms=NOW_MS)


def choose(
    cluster: ClusterView, partition: Partition, rack: str, offset: int = 0, listener: str = "INSIDE"
) -> int:
    return NearestReplica(cluster, rack, listener).choose(partition, offset)


def test_the_leader_is_best_in_its_own_rack(cluster: ClusterView, partition: Partition) -> None:
    fetches(partition, 2, 10)
    assert choose(cluster, partition, "east") == -1
    assert choose(cluster, partition, "nowhere") == -1


def test_the_furthest_of_the_rack_is_chosen(cluster: ClusterView, partition: Partition) -> None:
    fetches(partition, 2, 0)
    fetches(partition, 3, 10)
    assert choose(cluster, partition, "west") == 3
    fetches(partition, 2, 10)
    assert choose(cluster, partition, "west") == 3
    fetches(partition, 3, 0)
    assert choose(cluster, partition, "west") == 2


def test_who_has_not_the_offset_is_not_chosen(cluster: ClusterView, partition: Partition) -> None:
    assert choose(cluster, partition, "west") == -1  # nobody has fetched
    fetches(partition, 2, 10, log_start=10)
    assert choose(cluster, partition, "west", offset=5) == -1
    fetches(partition, 3, 0)
    assert choose(cluster, partition, "west", offset=5) == -1
    fetches(partition, 3, 10)
    assert choose(cluster, partition, "west", offset=5) == 3


def test_who_is_out_of_sync_or_out_of_reach_is_not_chosen(
    cluster: ClusterView, partition: Partition
) -> None:
    fetches(partition, 5, 10)
    assert choose(cluster, partition, "north") == -1
    fetches(partition, 2, 10)
    assert choose(cluster, partition, "west", listener="OUTSIDE") == -1


def test_a_follower_sends_nobody_away(cluster: ClusterView, partition: Partition) -> None:
    fetches(partition, 2, 10)
    partition.become_follower(3, 1)
    assert choose(cluster, partition, "west") == -1
