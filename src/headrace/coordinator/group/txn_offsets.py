"""Offsets that are committed in a transaction (TxnOffsetCommit), and the end of the transaction in their partition. Pure.

The member and the generation are checked as for other commits (KIP-447), where the request has them: older ones name no member. That
the partition belongs to the transaction was verified before, or is refused by the log.
"""

from headrace.coordinator.contract import TxnWriter
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import TransactionEnding, TxnOffsetsCommitted
from headrace.coordinator.group.state import ClassicGroup, GroupState
from headrace.coordinator.group.stored_records import CommittedOffset, OffsetRecord
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


def commit(event: TxnOffsetsCommitted, context: EventContext) -> None:
    """Handle a TxnOffsetCommit."""
    request = event.request
    refusal = _refuse(request, context)
    if refusal is not None:
        context.reply(event.token, refused_txn_commit(request, refusal))
        return
    context.writer = TxnWriter(request.producer_id, request.producer_epoch, event.verified)
    topics = [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(
                    partition_index=each.partition_index,
                    error_code=_commit_partition(event, topic, each, context),
                )
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    context.reply(event.token, TxnOffsetCommitResponse(topics=topics))


def _commit_partition(
    event: TxnOffsetsCommitted,
    topic: TxnOffsetCommitRequestTopic,
    partition: TxnOffsetCommitRequestPartition,
    context: EventContext,
) -> ErrorCode:
    metadata = partition.committed_metadata or ""
    if len(metadata) > context.settings.offset_metadata_max_bytes:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    committed = CommittedOffset(
        offset=partition.committed_offset,
        commit_timestamp_ms=context.now_ms,
        leader_epoch=partition.committed_leader_epoch,
        metadata=metadata,
        topic_id=event.topic_ids[topic.name],
    )
    context.records.append(
        OffsetRecord(event.request.group_id, topic.name, partition.partition_index, committed)
    )
    return ErrorCode.NONE


def _refuse(request: TxnOffsetCommitRequest, context: EventContext) -> ErrorCode | None:
    group = context.state.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        context.state.groups[request.group_id] = ClassicGroup(
            group_id=request.group_id, state_since_ms=context.now_ms
        )
        return None
    if request.generation_id < 0:
        is_nobody = not request.member_id and request.group_instance_id is None
        if is_nobody or group.state is GroupState.EMPTY:
            return None
    refusal = group.refuse_member(request.member_id, request.group_instance_id)
    if refusal is None and request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return refusal


def refused_txn_commit(
    request: TxnOffsetCommitRequest, error: ErrorCode
) -> TxnOffsetCommitResponse:
    """The same error for every partition: TxnOffsetCommit has no place for it at the top."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def end_transaction(event: TransactionEnding, context: EventContext) -> None:
    """Handle a marker for this partition: the offsets of the transaction count from now on, or are forgotten."""
    context.marker = event.marker
    context.reply(event.token, ErrorCode.NONE)
