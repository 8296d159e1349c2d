"""The rounds of a classic group: preparing, completing the join phase, giving up on the silent. Pure.

A round begins with `prepare_rebalance`, collects JoinGroups, and ends in `complete_join`, which opens
the next generation and answers everyone. Members that do not come back in time are dropped, except
static ones: those keep their place until their session ends. The first round of an empty group waits a
little longer for company (`group.initial.rebalance.delay.ms`).
"""

from headrace.coordinator.contract import Token
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import JoinTimer, SessionTimer, SyncTimer
from headrace.coordinator.group.state import ClassicGroup, GroupState, Member
from headrace.coordinator.group.stored_records import GroupRecord
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from headrace.wire.messages.sync_group import SyncGroupResponse

_SHORTEST_WAIT_MS = 100  # a client may ask for 0, and the same wait would begin again at once

# -- parked requests -----------------------------------------------------------------------------


def park_join(group: ClassicGroup, member: Member, token: Token, context: EventContext) -> None:
    """The member waits for the round to end. A JoinGroup it sent earlier is answered as outdated."""
    answer_join(
        group,
        member.member_id,
        JoinGroupResponse(member_id=member.member_id, error_code=ErrorCode.REBALANCE_IN_PROGRESS),
        context,
    )
    group.awaiting_join[member.member_id] = token


def answer_join(
    group: ClassicGroup, member_id: str, response: JoinGroupResponse, context: EventContext
) -> None:
    """Answer the member's parked JoinGroup, if there is one."""
    token = group.awaiting_join.pop(member_id, None)
    if token is not None:
        context.reply(token, response)


def answer_sync(
    group: ClassicGroup, member_id: str, response: SyncGroupResponse, context: EventContext
) -> bool:
    """Answer the member's parked SyncGroup, if there is one."""
    token = group.awaiting_sync.pop(member_id, None)
    if token is None:
        return False
    context.reply(token, response)
    return True


def current_generation(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """What a member is told about the generation; only the leader sees the others."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=describe_to_leader(group) if group.leader_id == member_id else (),
    )


def describe_to_leader(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Everyone's metadata under the chosen protocol: what the leader assigns from."""
    protocol_name = group.protocol_name or ""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(protocol_name),
        )
        for member in group.members.values()
    ]


# -- members -------------------------------------------------------------------------------------


def restart_session(group: ClassicGroup, member: Member, context: EventContext) -> None:
    context.set_timer(SessionTimer(group.group_id, member.member_id), member.session_timeout_ms)


def drop_member(group: ClassicGroup, member_id: str, context: EventContext) -> None:
    """Remove a member; whatever it waits for is answered with UNKNOWN_MEMBER_ID, so that it rejoins."""
    error = ErrorCode.UNKNOWN_MEMBER_ID
    answer_join(group, member_id, JoinGroupResponse(error_code=error), context)
    answer_sync(group, member_id, SyncGroupResponse(error_code=error), context)
    context.cancel_timer(SessionTimer(group.group_id, member_id))
    group.remove(member_id)


def drop_pending_member(group: ClassicGroup, member_id: str, context: EventContext) -> None:
    del group.pending_members[member_id]
    context.cancel_timer(SessionTimer(group.group_id, member_id))


# -- the round -----------------------------------------------------------------------------------


def rebalance_or_complete_join(group: ClassicGroup, context: EventContext) -> None:
    """Begin a round, or see whether the one that is going on can end."""
    if group.can_rebalance:
        prepare_rebalance(group, context)
    else:
        maybe_complete_join(group, context)


def prepare_rebalance(group: ClassicGroup, context: EventContext) -> None:
    """Begin a round. Those that wait for an assignment are sent back to join again."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
            response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
            if answer_sync(group, member.member_id, response, context):
                restart_session(group, member, context)
    group.pending_sync.clear()
    context.cancel_timer(SyncTimer(group.group_id))
    is_first_round = group.state is GroupState.EMPTY
    group.transition_to(GroupState.PREPARING_REBALANCE, context.now_ms)
    if is_first_round:
        delay_ms = context.settings.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.new_member_added = False
        context.set_timer(JoinTimer(group.group_id), delay_ms)
    elif group.all_joined:
        complete_join(group, context)
    else:
        context.set_timer(JoinTimer(group.group_id), group.rebalance_timeout_ms)


def maybe_complete_join(group: ClassicGroup, context: EventContext) -> None:
    """End the join phase if everyone is here. A first round always waits for its timer."""
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and group.previous_state is not GroupState.EMPTY
        and group.all_joined
    ):
        complete_join(group, context)


def join_time_is_up(group: ClassicGroup, context: EventContext) -> None:
    """The join timer fired: extend a first round that is still growing, else go on without the late."""
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    is_first_round = group.previous_state is GroupState.EMPTY
    if is_first_round and group.new_member_added and group.initial_remaining_ms:
        group.new_member_added = False
        delay_ms = min(context.settings.initial_rebalance_delay_ms, group.initial_remaining_ms)
        group.initial_remaining_ms = max(group.initial_remaining_ms - group.initial_delay_ms, 0)
        group.initial_delay_ms = delay_ms
        context.set_timer(JoinTimer(group.group_id), delay_ms)
    else:
        complete_join(group, context)


def complete_join(group: ClassicGroup, context: EventContext) -> None:
    """End the join phase: drop who did not come, open the next generation, answer everyone."""
    context.cancel_timer(JoinTimer(group.group_id))
    late = [
        member.member_id
        for member in group.members.values()
        if member.instance_id is None and member.member_id not in group.awaiting_join
    ]
    for member_id in late:
        drop_member(group, member_id, context)
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none of them came. Wait for one, or for their sessions to end.
        wait_ms = max(group.rebalance_timeout_ms, _SHORTEST_WAIT_MS)
        context.set_timer(JoinTimer(group.group_id), wait_ms)
        return
    group.start_next_generation(context.now_ms)
    if group.state is GroupState.EMPTY:
        context.records.append(GroupRecord(group_id=group.group_id, metadata=group.as_metadata({})))
        return
    for member in group.members.values():
        answer_join(group, member.member_id, current_generation(group, member.member_id), context)
        restart_session(group, member, context)
        member.is_new = False
        group.pending_sync.add(member.member_id)
    context.set_timer(SyncTimer(group.group_id), group.rebalance_timeout_ms)


def sync_time_is_up(group: ClassicGroup, context: EventContext) -> None:
    """The sync timer fired: members that took the generation but never asked for their share go."""
    if group.pending_sync and group.state in (
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    ):
        for member_id in list(group.pending_sync):
            drop_member(group, member_id, context)
        prepare_rebalance(group, context)
