"""DescribeProducers (61), version 0: the idempotent and transactional producers a partition knows.

Every replica answers for its own log, because `kafka-transactions --broker-id` asks a replica that does not lead, too.

Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER (no replica here), KAFKA_STORAGE_ERROR.
"""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.partition_lookup import find_partition
from headrace.broker.requests.request_context import RequestContext
from headrace.replication.partition_table import PartitionTable
from headrace.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from headrace.wire.refusal import Refusal


def handle(
    request: DescribeProducersRequest,
    context: RequestContext,
    *,
    partitions: PartitionTable,
    cluster: ClusterView,
) -> DescribeProducersResponse:
    def answer(topic: str, index: int) -> PartitionResponse:
        partition = find_partition(partitions, cluster, topic, index)
        if isinstance(partition, Refusal):
            return PartitionResponse(
                partition_index=index,
                error_code=partition.error_code,
                error_message=partition.message,
            )
        return PartitionResponse(
            partition_index=index,
            active_producers=[
                ProducerState(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=entry.last_timestamp,
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=(
                        -1 if entry.txn_first_offset is None else entry.txn_first_offset
                    ),
                )
                for entry in partition.log.producers
            ],
        )

    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[answer(topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )
