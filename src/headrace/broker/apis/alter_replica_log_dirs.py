"""AlterReplicaLogDirs (34), versions 1-2: replicas move between the log directories of this broker (KIP-113). v2 flexible.

The answer says that a move is wanted from now on; DescribeLogDirs shows how far it is. A replica that is not here yet is
refused with REPLICA_NOT_AVAILABLE, and created in that directory once it comes.
Errors, per partition: LOG_DIR_NOT_FOUND, KAFKA_STORAGE_ERROR, REPLICA_NOT_AVAILABLE, UNKNOWN_TOPIC_OR_PARTITION,
INVALID_TOPIC_EXCEPTION for a name that is too long for the copy's directory.
"""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.replica_moves import ReplicaMoves
from headrace.broker.requests.request_context import RequestContext
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(
    request: AlterReplicaLogDirsRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    replica_moves: ReplicaMoves,
) -> AlterReplicaLogDirsResponse:
    results: dict[str, dict[int, ErrorCode]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                where = TopicPartition(topic.name, index)
                error = replica_moves.want(where, directory.path)
                if error is ErrorCode.REPLICA_NOT_AVAILABLE:
                    if cluster.state.partition(*where) is None:
                        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                    else:
                        replica_moves.want_once_here(where, directory.path)
                results.setdefault(topic.name, {})[index] = error
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                    for index, error in errors.items()
                ],
            )
            for name, errors in results.items()
        ]
    )
