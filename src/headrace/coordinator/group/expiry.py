"""What goes away: expired offsets, groups without members and offsets, deleted groups and topics. Pure.

Everything here works by tombstones; the live group disappears when its tombstone is replayed.
"""

from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import ExpiryTimer, GroupDeleted, TopicsDeleted
from headrace.coordinator.group.state import ClassicGroup, GroupState
from headrace.coordinator.group.stored_records import CommittedOffset
from headrace.ids import NO_TOPIC_ID
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_groups import DeletableGroupResult


def expire(context: EventContext) -> None:
    """The expiry timer fired: look through all groups, and set it again."""
    context.set_timer(ExpiryTimer(), context.settings.offsets_retention_check_interval_ms)
    context.atomic = False
    for group in context.state.groups.values():
        nothing_left = _expire_offsets(group, context)
        # Offsets of an open transaction may count tomorrow.
        nothing_left = nothing_left and not context.state.hard.pending.is_open(group.group_id)
        if nothing_left and group.state is GroupState.EMPTY and not group.pending_members:
            context.drop_group(group.group_id)


def _expire_offsets(group: ClassicGroup, context: EventContext) -> bool:
    """Drop what has expired. True if no offset remains."""
    by_topic = context.state.hard.offsets.get(group.group_id)
    if by_topic is None:
        return True
    if not _may_expire(group):
        return False
    nothing_left = True
    pending = context.state.hard.pending
    for topic, partitions in by_topic.items():
        subscribed = group.is_subscribed_to(topic)
        for partition, committed in partitions.items():
            has_expired = not subscribed and _has_expired(group, committed, context)
            if has_expired and not pending.has(group.group_id, topic, partition):
                context.drop_offset(group.group_id, topic, partition)
            else:
                nothing_left = False
    return nothing_left


def _may_expire(group: ClassicGroup) -> bool:
    """Empty groups; simple ones; and stable consumers, for topics that they no longer subscribe to."""
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return True
    return (
        group.uses_consumer_protocol
        and group.topics is not None
        and group.state is GroupState.STABLE
    )


def _has_expired(group: ClassicGroup, committed: CommittedOffset, context: EventContext) -> bool:
    if committed.expire_timestamp_ms is not None:
        return context.now_ms >= committed.expire_timestamp_ms
    idle_since_ms = committed.commit_timestamp_ms
    had_members = group.protocol_type is not None
    if had_members and group.state is GroupState.EMPTY and group.state_since_ms is not None:
        # Members keep the offsets of a group alive; the clock starts when the last one has left.
        idle_since_ms = group.state_since_ms
    return context.now_ms - idle_since_ms >= context.settings.offsets_retention_ms


def delete_group(event: GroupDeleted, context: EventContext) -> None:
    """Handle one group of a DeleteGroups: only a group without members can be deleted."""
    group_id = event.group_id
    group = context.state.groups.get(group_id)
    error = ErrorCode.NONE
    if group is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND
    elif group.state is not GroupState.EMPTY:
        error = ErrorCode.NON_EMPTY_GROUP
    else:
        hard = context.state.hard
        committed = hard.offsets.get(group_id, {})
        places = [(topic, partition) for topic, each in committed.items() for partition in each]
        for topic, partition in dict.fromkeys(places + sorted(hard.pending.places(group_id))):
            context.drop_offset(group_id, topic, partition)
        context.drop_group(group_id)
    context.reply(event.token, DeletableGroupResult(group_id=group_id, error_code=error))


def forget_topics(event: TopicsDeleted, context: EventContext) -> None:
    """Drop the offsets of deleted topics. Those of a younger topic of the same name stay."""
    context.atomic = False
    hard = context.state.hard
    gone = {(topic.name, topic.topic_id) for topic in event.topics}
    gone |= {(topic.name, NO_TOPIC_ID) for topic in event.topics}
    for group_id, by_topic in hard.offsets.items():
        for deleted in event.topics:
            for partition, committed in by_topic.get(deleted.name, {}).items():
                if (deleted.name, committed.topic_id) in gone:
                    context.drop_offset(group_id, deleted.name, partition)
    for _, (group_id, topic, partition, committed_later) in hard.pending.entries():
        assert committed_later is not None
        known = hard.offsets.get(group_id, {}).get(topic, {})
        if (topic, committed_later.topic_id) in gone and partition not in known:
            context.drop_offset(group_id, topic, partition)
    context.reply(event.token, None)
