"""TxnOffsetCommit (28), versions 0-5: a group's positions, which count once the producer's transaction is committed.

v2 leader epoch · v3 flexible; member, generation and instance are checked (KIP-447) · v4 TRANSACTION_ABORTABLE · v5 the broker adds the
group's partition of `__consumer_offsets` to the transaction (KIP-890). Up to v4 the client has done so by AddOffsetsToTxn, which is verified.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, OFFSET_METADATA_TOO_LARGE; the same for all that exist: those of OffsetCommit but
for REBALANCE_IN_PROGRESS, INVALID_GROUP_ID, INVALID_PRODUCER_EPOCH, INVALID_PRODUCER_ID_MAPPING, INVALID_TXN_STATE, TRANSACTION_ABORTABLE,
CONCURRENT_TRANSACTIONS from v5 on.
"""

from collections.abc import Sequence
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.requests.txn_verification import (
    TxnProducer,
    TxnSupport,
    TxnVerification,
    of_offset_commit,
    offset_commit_error,
)
from headrace.clock import Clock
from headrace.coordinator.group.groups import Groups
from headrace.coordinator.group.txn_offsets import refused_txn_commit
from headrace.internal_topics import CONSUMER_OFFSETS
from headrace.log.producers.producer_state import NOT_VERIFIED, Verification
from headrace.replication.partition_table import PartitionTable
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


async def handle(
    request: TxnOffsetCommitRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    groups: Groups,
    partitions: PartitionTable,
    txn_verification: TxnVerification,
    clock: Clock,
) -> TxnOffsetCommitResponse:
    if not request.group_id:
        return refused_txn_commit(request, ErrorCode.INVALID_GROUP_ID)
    if request.producer_id < 0 or request.producer_epoch < 0:
        return refused_txn_commit(request, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    asked = request.topics
    request.topics = _existing(request, cluster)
    if not request.topics:
        return _in_order(asked, TxnOffsetCommitResponse())
    verified = await _verify(
        request, of_offset_commit(context.version), groups, partitions, txn_verification, clock
    )
    if isinstance(verified, ErrorCode):
        return _in_order(asked, refused_txn_commit(request, verified))
    topic_ids: dict[str, UUID] = {}
    for topic in request.topics:
        known = cluster.state.topics.get(topic.name)
        if known is None:  # deleted meanwhile
            return _in_order(asked, TxnOffsetCommitResponse())
        topic_ids[topic.name] = known.topic_id
    response = await groups.commit_txn_offsets(context.version, request, topic_ids, verified)
    return _in_order(asked, response)


async def _verify(
    request: TxnOffsetCommitRequest,
    support: TxnSupport,
    groups: Groups,
    partitions: PartitionTable,
    txn_verification: TxnVerification,
    clock: Clock,
) -> Verification | ErrorCode | None:
    """What the group's log needs to see before it takes the offsets; an error code if the transaction is not open."""
    partition = partitions.get(CONSUMER_OFFSETS, groups.partition_for(request.group_id))
    if partition is None or not partition.is_leader:
        return None  # the group coordinator says that it is not here
    if not txn_verification.is_needed(support):
        return NOT_VERIFIED
    producer = TxnProducer(request.transactional_id, request.producer_id, request.producer_epoch)
    producers = partition.log.producers
    if producers.has_open_txn(producer.producer_id, producer.producer_epoch):
        return None
    verification: Verification | None = None

    def begin() -> None:
        nonlocal verification
        verification = partition.log.producers.verification(
            producer.producer_id,
            producer.producer_epoch,
            -1,
            clock(),
            is_implicit=support is TxnSupport.IMPLICIT,
        )

    place = partition.topic_partition
    errors = await txn_verification.verify(producer, (place,), support, begin)
    error = errors.get(partition.topic_partition)
    return verification if error is None else offset_commit_error(error, support)


def _existing(
    request: TxnOffsetCommitRequest, cluster: ClusterView
) -> list[TxnOffsetCommitRequestTopic]:
    """The part of the request that names partitions which exist; of a partition that is named twice, the last."""
    found: dict[str, dict[int, TxnOffsetCommitRequestPartition]] = {}
    for topic in request.topics:
        known = cluster.state.topics.get(topic.name)
        count = 0 if known is None else len(known.partitions)
        for each in topic.partitions:
            if 0 <= each.partition_index < count:
                found.setdefault(topic.name, {})[each.partition_index] = each
    return [
        TxnOffsetCommitRequestTopic(name=name, partitions=list(each.values()))
        for name, each in found.items()
    ]


def _in_order(
    asked: Sequence[TxnOffsetCommitRequestTopic], answered: TxnOffsetCommitResponse
) -> TxnOffsetCommitResponse:
    """The answer in the order of the request; what has none does not exist."""
    codes = {
        (topic.name, each.partition_index): each.error_code
        for topic in answered.topics
        for each in topic.partitions
    }
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index,
                        error_code=codes.get((topic.name, each.partition_index), missing),
                    )
                    for each in topic.partitions
                ],
            )
            for topic in asked
        ]
    )
