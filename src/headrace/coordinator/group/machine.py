"""GroupMachine: the core of one `__consumer_offsets` partition. Routes events, replays records, checks.

Owns the `ShardState`. Every decision is in the module named after it; this one only knows who decides
what, and how a record changes the hard state.
"""

from collections import Counter
from collections.abc import Iterable
from typing import assert_never

from headrace.coordinator.contract import Effect, EffectDone, Loaded, Outcome, TimerFired
from headrace.coordinator.group import (
    describe,
    events,
    expiry,
    invariants,
    offsets,
    txn_offsets,
)
from headrace.coordinator.group.classic import join, membership, rebalance, sync
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import ClassicGroup, GroupState, HardState, ShardState
from headrace.coordinator.group.stored_records import (
    GroupLogRecord,
    GroupRecord,
    OffsetRecord,
    PendingOffsetRecord,
    TransactionEndRecord,
)


class GroupMachine:
    """A `contract.Machine` for the classic groups and offsets of one shard."""

    __slots__ = ("_settings", "state")

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.state = ShardState()

    # -- what a machine does ---------------------------------------------------------------------

    def handle(
        self, event: events.GroupRequestEvent | TimerFired | EffectDone | Loaded, now_ms: int
    ) -> Outcome[GroupLogRecord]:
        context = EventContext(now_ms, self._settings, self.state)
        if isinstance(event, TimerFired):
            _fire(event, context)
        elif isinstance(event, Loaded):
            _begin(context)
        else:
            assert not isinstance(event, EffectDone), f"a group calls for no effects: {event}"
            _decide(event, context)
        return context.outcome()

    def replay(self, record: GroupLogRecord) -> None:
        match record:
            case OffsetRecord():
                _replay_offset(self.state.hard, record)
            case PendingOffsetRecord():
                self.state.hard.pending.add(*record)
            case TransactionEndRecord():
                _replay_transaction_end(self.state.hard, record)
            case _:
                self._replay_group(record)

    def owed_effects(self) -> Iterable[Effect]:
        return ()

    def check(self) -> None:
        invariants.check(self.state)

    def _replay_group(self, record: GroupRecord) -> None:
        """While loading there are no live groups yet: `_begin` builds them from the hard state."""
        hard, live = self.state.hard, self.state.groups
        group_id, metadata = record.group_id, record.metadata
        if metadata is not None:
            hard.groups[group_id] = metadata
            if group_id in live:
                sync.settle(live[group_id], metadata)
            return
        hard.groups.pop(group_id, None)
        has_offsets = group_id in hard.offsets or hard.pending.is_open(group_id)
        if live.pop(group_id, None) is not None and has_offsets:
            live[group_id] = ClassicGroup(group_id=group_id)

    # -- what can be counted ---------------------------------------------------------------------

    @property
    def groups_by_state(self) -> Counter[GroupState]:
        return Counter(group.state for group in self.state.groups.values())

    @property
    def offset_count(self) -> int:
        return sum(
            len(partitions)
            for by_topic in self.state.hard.offsets.values()
            for partitions in by_topic.values()
        )


def _decide(event: events.GroupRequestEvent, context: EventContext) -> None:
    match event:
        case events.HeartbeatReceived():
            membership.heartbeat(event, context)
        case events.OffsetsCommitted():
            offsets.commit(event, context)
        case events.TxnOffsetsCommitted():
            txn_offsets.commit(event, context)
        case events.TransactionEnding():
            txn_offsets.end_transaction(event, context)
        case events.OffsetsFetched():
            offsets.fetch(event, context)
        case events.JoinRequested():
            join.join(event, context)
        case events.SyncRequested():
            sync.sync(event, context)
        case events.LeaveRequested():
            membership.leave(event, context)
        case _:
            _decide_for_operators(event, context)


def _decide_for_operators(
    event: events.OffsetsDeleted
    | events.GroupsListed
    | events.GroupDescribed
    | events.GroupDeleted
    | events.TopicsDeleted,
    context: EventContext,
) -> None:
    match event:
        case events.OffsetsDeleted():
            offsets.delete(event, context)
        case events.GroupsListed():
            describe.list_groups(event, context)
        case events.GroupDescribed():
            describe.describe_group(event, context)
        case events.GroupDeleted():
            expiry.delete_group(event, context)
        case events.TopicsDeleted():
            expiry.forget_topics(event, context)
        case _:
            assert_never(event)


def _fire(event: TimerFired, context: EventContext) -> None:
    """A timer of a group that is gone means nothing any more."""
    groups = context.state.groups
    match event.key:
        case events.SessionTimer():
            membership.session_ran_out(event.key, context)
        case events.JoinTimer(group_id=group_id) if group_id in groups:
            rebalance.join_time_is_up(groups[group_id], context)
        case events.SyncTimer(group_id=group_id) if group_id in groups:
            rebalance.sync_time_is_up(groups[group_id], context)
        case events.ExpiryTimer():
            expiry.expire(context)
        case _:
            pass


def _begin(context: EventContext) -> None:
    """The log has been replayed: build the live groups and give every member a full session."""
    hard, groups = context.state.hard, context.state.groups
    for group_id, metadata in hard.groups.items():
        groups[group_id] = ClassicGroup.from_metadata(group_id, metadata)
    for group_id in hard.groups_with_offsets - groups.keys():
        groups[group_id] = ClassicGroup(group_id=group_id)
    for group in groups.values():
        for member in group.members.values():
            rebalance.restart_session(group, member, context)
        if len(group.members) > context.settings.max_size:
            # The limit was lowered: a round gives the members the chance to commit before some must go.
            rebalance.prepare_rebalance(group, context)
    context.set_timer(events.ExpiryTimer(), context.settings.offsets_retention_check_interval_ms)


def _replay_offset(hard: HardState, record: OffsetRecord) -> None:
    group_id, topic, partition = record.group_id, record.topic, record.partition
    if hard.pending.is_open(group_id):
        change = hard.pending.forget if record.committed is None else hard.pending.supersede
        change(group_id, topic, partition)
    if record.committed is not None:
        by_topic = hard.offsets.setdefault(group_id, {})
        by_topic.setdefault(topic, {})[partition] = record.committed
        return
    by_topic = hard.offsets.get(group_id, {})
    partitions = by_topic.get(topic, {})
    if partitions.pop(partition, None) is not None:
        if not partitions:
            del by_topic[topic]
        if not by_topic:
            del hard.offsets[group_id]


def _replay_transaction_end(hard: HardState, record: TransactionEndRecord) -> None:
    for group_id, topic, partition, committed in hard.pending.end(
        record.producer_id, is_commit=record.is_commit
    ):
        assert committed is not None
        hard.offsets.setdefault(group_id, {}).setdefault(topic, {})[partition] = committed
