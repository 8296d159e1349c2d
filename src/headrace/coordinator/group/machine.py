"""GroupMachine: the core of one `__consumer_offsets` partition. Routes events, replays records, checks.

Owns the `ShardState`. Every decision is in the module named after it; this one only knows who decides
what, and how a record changes the hard state.
"""

from collections import Counter
from typing import assert_never

from headrace.coordinator.contract import Loaded, Outcome, TimerFired
from headrace.coordinator.group import (
    describe,
    events,
    expiry,
    invariants,
    join,
    membership,
    offsets,
    rebalance,
    sync,
)
from headrace.coordinator.group.refusals import refusal
from headrace.coordinator.group.settings import GroupSettings
from headrace.coordinator.group.state import ClassicGroup, GroupState, HardState, ShardState
from headrace.coordinator.group.stored_records import GroupLogRecord, GroupRecord, OffsetRecord
from headrace.coordinator.group.turn import Turn
from headrace.wire.error_code import ErrorCode


class GroupMachine:
    """A `contract.Machine` for the classic groups and offsets of one shard."""

    __slots__ = ("_settings", "state")

    def __init__(self, settings: GroupSettings) -> None:
        self._settings = settings
        self.state = ShardState()

    # -- what a machine does ---------------------------------------------------------------------

    def handle(
        self, event: events.GroupRequestEvent | TimerFired | Loaded, now_ms: int
    ) -> Outcome[GroupLogRecord]:
        turn = Turn(now_ms, self._settings, self.state)
        if isinstance(event, TimerFired):
            _fire(event, turn)
        elif isinstance(event, Loaded):
            _begin(turn)
        else:
            _decide(event, turn)
        return turn.outcome()

    def replay(self, record: GroupLogRecord) -> None:
        if isinstance(record, OffsetRecord):
            _replay_offset(self.state.hard, record)
        else:
            self._replay_group(record)

    def refuse(self, event: events.GroupRequestEvent, error: ErrorCode) -> object:
        return refusal(event, error)

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
        if live.pop(group_id, None) is not None and group_id in hard.offsets:
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


def _decide(event: events.GroupRequestEvent, turn: Turn) -> None:
    match event:
        case events.HeartbeatReceived():
            membership.heartbeat(event, turn)
        case events.OffsetsCommitted():
            offsets.commit(event, turn)
        case events.OffsetsAsked():
            offsets.fetch(event, turn)
        case events.JoinRequested():
            join.join(event, turn)
        case events.SyncRequested():
            sync.sync(event, turn)
        case events.LeaveRequested():
            membership.leave(event, turn)
        case _:
            _decide_for_operators(event, turn)


def _decide_for_operators(
    event: events.OffsetsDeleted
    | events.GroupsListed
    | events.GroupDescribed
    | events.GroupDeleted
    | events.TopicsDeleted,
    turn: Turn,
) -> None:
    match event:
        case events.OffsetsDeleted():
            offsets.delete(event, turn)
        case events.GroupsListed():
            describe.list_groups(event, turn)
        case events.GroupDescribed():
            describe.describe_group(event, turn)
        case events.GroupDeleted():
            expiry.delete_group(event, turn)
        case events.TopicsDeleted():
            expiry.forget_topics(event, turn)
        case _:
            assert_never(event)


def _fire(event: TimerFired, turn: Turn) -> None:
    """A timer of a group that is gone means nothing any more."""
    groups = turn.state.groups
    match event.key:
        case events.SessionTimer():
            membership.session_ran_out(event.key, turn)
        case events.JoinTimer(group_id=group_id) if group_id in groups:
            rebalance.join_time_is_up(groups[group_id], turn)
        case events.SyncTimer(group_id=group_id) if group_id in groups:
            rebalance.sync_time_is_up(groups[group_id], turn)
        case events.ExpiryTimer():
            expiry.expire(turn)
        case _:
            pass


def _begin(turn: Turn) -> None:
    """The log has been replayed: build the live groups and give every member a full session."""
    hard, groups = turn.state.hard, turn.state.groups
    for group_id, metadata in hard.groups.items():
        groups[group_id] = ClassicGroup.from_metadata(group_id, metadata)
    for group_id in hard.offsets.keys() - groups.keys():
        groups[group_id] = ClassicGroup(group_id=group_id)
    for group in groups.values():
        for member in group.members.values():
            rebalance.restart_session(group, member, turn)
        if len(group.members) > turn.settings.max_size:
            # The limit was lowered: a round gives the members the chance to commit before some must go.
            rebalance.prepare_rebalance(group, turn)
    turn.set_timer(events.ExpiryTimer(), turn.settings.offsets_retention_check_interval_ms)


def _replay_offset(hard: HardState, record: OffsetRecord) -> None:
    group_id, topic, partition = record.group_id, record.topic, record.partition
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
