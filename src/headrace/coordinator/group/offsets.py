"""Committed offsets: commit, fetch, delete. Pure.

Whether topics exist and who may see them was settled before a request came here; every topic of a
commit carries name and id. Offsets of open transactions (`txn_offsets`) are not told before their transaction is committed; who asks
for stable offsets is told to ask again for partitions that have such offsets.
"""

from collections.abc import Mapping
from uuid import UUID

from headrace.coordinator.group.classic.rebalance import restart_session
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import OffsetsCommitted, OffsetsDeleted, OffsetsFetched
from headrace.coordinator.group.state import ClassicGroup, GroupState
from headrace.coordinator.group.stored_records import CommittedOffset, OffsetRecord
from headrace.ids import NO_TOPIC_ID
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from headrace.wire.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from headrace.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_NO_RETENTION_TIME = -1
_LAST_TIMESTAMP_MS = 2**63 - 1
_FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND = 9

# -- commit --------------------------------------------------------------------------------------


def commit(event: OffsetsCommitted, context: EventContext) -> None:
    """Handle an OffsetCommit."""
    request = event.request
    refusal = _refuse_commit(event, context)
    if refusal is not None:
        context.reply(event.token, refused_commit(request, refusal))
        return
    expire_timestamp_ms = (
        None
        if request.retention_time_ms == _NO_RETENTION_TIME
        else min(context.now_ms + request.retention_time_ms, _LAST_TIMESTAMP_MS)
    )
    topics = []
    for topic in request.topics:
        results = []
        for partition in topic.partitions:
            error = ErrorCode.NONE
            if len(partition.committed_metadata or "") > context.settings.offset_metadata_max_bytes:
                error = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                committed = _committed(
                    topic.topic_id, partition, context.now_ms, expire_timestamp_ms
                )
                context.records.append(
                    OffsetRecord(
                        group_id=request.group_id,
                        topic=topic.name,
                        partition=partition.partition_index,
                        committed=committed,
                    )
                )
            results.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
            )
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=results)
        )
    context.reply(event.token, OffsetCommitResponse(topics=topics))


def _committed(
    topic_id: UUID,
    partition: OffsetCommitRequestPartition,
    now_ms: int,
    expire_timestamp_ms: int | None,
) -> CommittedOffset:
    return CommittedOffset(
        offset=partition.committed_offset,
        # The record of an offset with its own expiry has no room for these two.
        leader_epoch=partition.committed_leader_epoch if expire_timestamp_ms is None else -1,
        topic_id=topic_id if expire_timestamp_ms is None else NO_TOPIC_ID,
        metadata=partition.committed_metadata or "",
        commit_timestamp_ms=now_ms,
        expire_timestamp_ms=expire_timestamp_ms,
    )


def refused_commit(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition: OffsetCommit has no place for it at the top."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _refuse_commit(event: OffsetsCommitted, context: EventContext) -> ErrorCode | None:
    request = event.request
    group = context.state.groups.get(request.group_id)
    generation_id = request.generation_id_or_member_epoch
    if group is None:
        if generation_id >= 0:
            if event.version >= _FIRST_COMMIT_VERSION_WITH_GROUP_ID_NOT_FOUND:
                return ErrorCode.GROUP_ID_NOT_FOUND
            return ErrorCode.ILLEGAL_GENERATION
        # A consumer that assigns itself, or an administrator: a simple group, without members.
        context.state.groups[request.group_id] = ClassicGroup(
            group_id=request.group_id, state_since_ms=context.now_ms
        )
        return None
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return None
    refusal = _refuse_committer(group, request)
    if refusal is None:
        restart_session(group, group.members[request.member_id], context)
    return refusal


def _refuse_committer(group: ClassicGroup, request: OffsetCommitRequest) -> ErrorCode | None:
    # A commit in nobody's name to a group with members fails here too: there is no member "".
    refusal = group.refuse_member(request.member_id, request.group_instance_id)
    if refusal is not None:
        return refusal
    if request.generation_id_or_member_epoch != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The member knows the new generation but not its share yet: it cannot have consumed in it.
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


# -- fetch ---------------------------------------------------------------------------------------


def fetch(event: OffsetsFetched, context: EventContext) -> None:
    """Handle one group of an OffsetFetch."""
    request = event.request
    hard = context.state.hard
    by_topic = hard.offsets.get(request.group_id, {})
    unstable = hard.pending.places(request.group_id) if event.require_stable else set()
    if request.topics is None:
        topics = [
            OffsetFetchResponseTopics(name=name, partitions=positions)
            for name, partitions in by_topic.items()
            if (positions := _own_positions(partitions, event.topic_id_of(name)))
        ]
    else:
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    _position(index, _same_topic(partitions.get(index), topic_id))
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
            for partitions in (by_topic.get(topic.name, {}),)
            for topic_id in (_asked_id(topic, event),)
        ]
    for told in topics if unstable else ():
        for position in told.partitions:
            if (told.name, position.partition_index) in unstable:
                _make_unstable(position)
    context.reply(event.token, OffsetFetchResponseGroup(group_id=request.group_id, topics=topics))


def _asked_id(topic: OffsetFetchRequestTopics, event: OffsetsFetched) -> UUID:
    """The id in the request, or the id of the topic that has the name now: older versions send no ids."""
    return event.topic_id_of(topic.name) if topic.topic_id == NO_TOPIC_ID else topic.topic_id


def _make_unstable(position: OffsetFetchResponsePartitions) -> None:
    """A transaction is open whose commit would change the offset: the consumer has to ask again."""
    position.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
    position.committed_offset = position.committed_leader_epoch = -1
    position.metadata = ""


def _own_positions(
    partitions: Mapping[int, CommittedOffset], topic_id: UUID
) -> list[OffsetFetchResponsePartitions]:
    return [
        _position(index, found)
        for index, found in partitions.items()
        if _same_topic(found, topic_id) is not None
    ]


def _same_topic(found: CommittedOffset | None, topic_id: UUID) -> CommittedOffset | None:
    """An offset of a deleted topic says nothing about a new one of the same name."""
    if found is None or NO_TOPIC_ID in (found.topic_id, topic_id) or found.topic_id == topic_id:
        return found
    return None


def _position(index: int, found: CommittedOffset | None) -> OffsetFetchResponsePartitions:
    if found is None:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=found.offset,
        committed_leader_epoch=found.leader_epoch,
        metadata=found.metadata,
    )


def refused_fetch(
    request: OffsetFetchRequestGroup, error: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    """Version 1 has no place for a group's error, so there every partition carries it."""
    if version >= 2:
        return OffsetFetchResponseGroup(group_id=request.group_id, error_code=error)
    return OffsetFetchResponseGroup(
        group_id=request.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=-1, error_code=error
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics or ()
        ],
    )


# -- delete --------------------------------------------------------------------------------------


def delete(event: OffsetsDeleted, context: EventContext) -> None:
    """Handle an OffsetDelete. A topic that the group consumes right now is left alone."""
    request = event.request
    group = context.state.groups.get(request.group_id)
    refusal = _refuse_delete(request.group_id, group)
    if refusal is not None:
        context.reply(event.token, OffsetDeleteResponse(error_code=refusal))
        return
    assert group is not None
    topics = [_delete_topic(group, topic, context) for topic in request.topics]
    context.reply(event.token, OffsetDeleteResponse(topics=topics))


def _refuse_delete(group_id: str, group: ClassicGroup | None) -> ErrorCode | None:
    if not group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY and not group.uses_consumer_protocol:
        # What the members of another protocol consume cannot be known.
        return ErrorCode.NON_EMPTY_GROUP
    return None


def _delete_topic(
    group: ClassicGroup, topic: OffsetDeleteRequestTopic, context: EventContext
) -> OffsetDeleteResponseTopic:
    subscribed = group.is_subscribed_to(topic.name)
    known = context.state.hard.offsets.get(group.group_id, {}).get(topic.name, {})
    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
    results = []
    for partition in topic.partitions:
        index = partition.partition_index
        is_pending = context.state.hard.pending.has(group.group_id, topic.name, index)
        if not subscribed and (index in known or is_pending):
            context.drop_offset(group.group_id, topic.name, index)
        results.append(OffsetDeleteResponsePartition(partition_index=index, error_code=error))
    return OffsetDeleteResponseTopic(name=topic.name, partitions=results)
