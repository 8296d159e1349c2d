"""Which brokers and directories have the replicas of partitions, and which of them leads: what moves, moving it, electing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from headrace.client.admin.admin import Admin
from headrace.client.admin.partitions import by_topic
from headrace.client.exchange import VersionNotOffered
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from headrace.wire.refusal import Refusal, Refused, refusal_of, require


class ElectionType(IntEnum):
    """The first replica, or whoever is alive at the price of records. The number is what goes over the wire."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A partition whose replicas are being moved."""

    replicas: Sequence[int]
    adding: Sequence[int]
    removing: Sequence[int]


def list_reassignments(
    admin: Admin, partitions: Mapping[str, Sequence[int]] | None = None
) -> dict[TopicPartition, Reassignment]:
    """Partitions whose replicas are being moved; nothing where the cluster cannot or may not say."""
    wanted = None
    if partitions is not None:
        wanted = [
            ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in partitions.items()
        ]
    request = ListPartitionReassignmentsRequest(topics=wanted, timeout_ms=admin.timeout_ms)
    try:
        answer = admin.ask_controller(request, errors_of=lambda found: [found.error_code])
        require(answer.error_code, answer.error_message)
    except VersionNotOffered:
        return {}
    except Refused as refused:
        if refused.error_code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return {}
        raise
    return {
        TopicPartition(topic.name, each.partition_index): Reassignment(
            replicas=each.replicas, adding=each.adding_replicas, removing=each.removing_replicas
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def alter_reassignments(
    admin: Admin,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_replication_factor_change: bool = True,
) -> dict[TopicPartition, Refusal]:
    """Have partitions moved to these brokers, or with None where they came from; what was refused."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=admin.timeout_ms,
        allow_replication_factor_change=allow_replication_factor_change,
        topics=[
            ReassignableTopic(
                name=topic,
                partitions=[
                    ReassignablePartition(
                        partition_index=index, replicas=targets[TopicPartition(topic, index)]
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(targets)
        ],
    )

    def errors_of(found: AlterPartitionReassignmentsResponse) -> list[int]:
        each = [one.error_code for topic in found.responses for one in topic.partitions]
        return [found.error_code, *each]

    answer = admin.ask_controller(request, errors_of=errors_of)
    require(answer.error_code, answer.error_message)
    refused = {}
    for topic in answer.responses:
        for each in topic.partitions:
            refusal = refusal_of(each.error_code, each.error_message)
            if refusal is not None:
                refused[TopicPartition(topic.name, each.partition_index)] = refusal
    return refused


def alter_replica_log_dirs(
    admin: Admin, broker_id: int, paths: Mapping[TopicPartition, str]
) -> dict[TopicPartition, Refusal | None]:
    """Have replicas of a broker moved to these directories of its own; what was refused, by partition."""
    by_path: dict[str, list[TopicPartition]] = {}
    for partition, path in paths.items():
        by_path.setdefault(path, []).append(partition)
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path,
                topics=[
                    AlterReplicaLogDirTopic(name=topic, partitions=indexes)
                    for topic, indexes in by_topic(partitions)
                ],
            )
            for path, partitions in by_path.items()
        ]
    )
    answer = admin.ask_broker(broker_id, request)
    return {
        TopicPartition(topic.topic_name, each.partition_index): refusal_of(each.error_code)
        for topic in answer.results
        for each in topic.partitions
    }


def elect_leaders(
    admin: Admin, election_type: ElectionType, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Refusal | None]:
    """Have leaders elected, for all partitions that need it with None; what was refused, by partition."""
    wanted = None
    if partitions is not None:
        wanted = [
            TopicPartitions(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions)
        ]
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=wanted, timeout_ms=admin.timeout_ms
    )

    def errors_of(found: ElectLeadersResponse) -> list[int]:
        each = [
            one.error_code
            for topic in found.replica_election_results
            for one in topic.partition_result
        ]
        return [found.error_code, *each]

    answer = admin.ask_controller(request, errors_of=errors_of)
    require(answer.error_code)
    return {
        TopicPartition(topic.topic, each.partition_id): refusal_of(
            each.error_code, each.error_message
        )
        for topic in answer.replica_election_results
        for each in topic.partition_result
    }
