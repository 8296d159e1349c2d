"""Finds the hosted partition that a request names, or the error code. Shared by the APIs that address partitions."""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.replication.fencing import ANY_EPOCH
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal


def find_partition(
    partitions: PartitionTable, cluster: ClusterView, topic: str, index: int
) -> Partition | Refusal:
    """The partition, in whatever role it is here."""
    partition = partitions.get(topic, index)
    return missing(cluster, topic, index) if partition is None else partition


def find_leader(
    partitions: PartitionTable,
    cluster: ClusterView,
    topic: str,
    index: int,
    *,
    current_leader_epoch: int = ANY_EPOCH,
) -> Partition | Refusal:
    """The partition, if this broker leads it in the leader epoch that the request names."""
    partition = find_partition(partitions, cluster, topic, index)
    if isinstance(partition, Refusal):
        return partition
    return partition.fence(current_leader_epoch) or partition


def missing(cluster: ClusterView, topic: str, index: int) -> Refusal:
    """The error code for a partition that is not hosted here."""
    partition = cluster.state.partition(topic, index)
    if partition is None:
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{index} does not exist")
    if cluster.broker_id in partition.replicas:
        return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{index} cannot be read from disk")
    return Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic}-{index} is led elsewhere")
