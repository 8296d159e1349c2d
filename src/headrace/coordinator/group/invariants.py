"""What must hold after every event and its replay. Pure; called by `GroupMachine.check`."""

from collections import Counter

from headrace.coordinator.group.state import ClassicGroup, GroupState, ShardState


def check(state: ShardState) -> None:
    """Assert every invariant of a loaded shard."""
    hard = state.hard
    assert hard.groups.keys() <= state.groups.keys(), "a stored group is not live"
    assert hard.groups_with_offsets <= state.groups.keys(), "a group with offsets is not live"
    for by_topic in hard.offsets.values():
        assert by_topic, "a group without offsets left a trace"
        assert all(by_topic.values()), "a topic without offsets left a trace"
    tokens: Counter[int] = Counter()
    for group_id, group in state.groups.items():
        assert group.group_id == group_id
        _check_members(group)
        _check_phase(group)
        tokens.update(group.awaiting_join.values())
        tokens.update(group.awaiting_sync.values())
        stored = hard.groups.get(group_id)
        if group.state is GroupState.STABLE:
            assert stored is not None, f"{group_id}: stable without a record"
            assert stored.generation_id == group.generation_id, (stored, group)
            # By instance where there is one: a static member may have come back under an id whose
            # record the log refused.
            stored_ids = {member.instance_id or member.member_id for member in stored.members}
            live_ids = {m.instance_id or m.member_id for m in group.members.values()}
            assert stored_ids == live_ids, (stored, group)
    assert all(count == 1 for count in tokens.values()), f"a token waits twice: {tokens}"


def _check_members(group: ClassicGroup) -> None:
    members = group.members.keys()
    assert all(member_id == member.member_id for member_id, member in group.members.items())
    assert not members & group.pending_members.keys(), group
    assert group.awaiting_join.keys() <= members, group
    assert group.awaiting_sync.keys() <= members, group
    assert group.pending_sync <= members, group
    assert not group.pending_sync & group.awaiting_sync.keys(), group
    assert group.static_members == {
        member.instance_id: member.member_id
        for member in group.members.values()
        if member.instance_id is not None
    }, group
    assert group.supported_protocols == Counter(
        name for member in group.members.values() for name, _ in member.protocols
    ), group
    assert (group.leader_id in members) if members else (group.leader_id is None), group


def _check_phase(group: ClassicGroup) -> None:
    match group.state:
        case GroupState.EMPTY:
            assert not group.members, group
            assert group.protocol_name is None, group
        case GroupState.PREPARING_REBALANCE:
            assert not group.pending_sync, group
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            assert group.members, group
            assert group.protocol_name is not None, group
            supporters = group.supported_protocols[group.protocol_name]
            assert supporters == len(group.members), group
    if group.awaiting_join:
        assert group.state is GroupState.PREPARING_REBALANCE, group
    if group.awaiting_sync:
        # Once the leader has spoken, all who wait are answered in the same breath.
        assert group.state is GroupState.COMPLETING_REBALANCE, group
        assert group.leader_id not in group.awaiting_sync, group
