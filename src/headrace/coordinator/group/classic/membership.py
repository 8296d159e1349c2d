"""A member's life between rounds: heartbeats, leaving, and the session that runs out. Pure."""

from headrace.coordinator.group.classic.rebalance import (
    complete_join,
    drop_member,
    drop_pending_member,
    maybe_complete_join,
    prepare_rebalance,
    rebalance_or_complete_join,
    restart_session,
)
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import HeartbeatReceived, LeaveRequested, SessionTimer
from headrace.coordinator.group.state import ClassicGroup, GroupState
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.wire.messages.leave_group import (
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

_FIRST_VERSION_WITH_MANY_LEAVING = 3


def heartbeat(event: HeartbeatReceived, context: EventContext) -> None:
    """Handle a Heartbeat."""
    error = _heartbeat(event.request, context)
    context.reply(event.token, HeartbeatResponse(error_code=error))


def _heartbeat(request: HeartbeatRequest, context: EventContext) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    group = context.state.groups.get(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    refusal = group.refuse_member(request.member_id, request.group_instance_id)
    if refusal is not None:
        return refusal
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    restart_session(group, group.members[request.member_id], context)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(event: LeaveRequested, context: EventContext) -> None:
    """Handle a LeaveGroup: one member below version 3, any number after."""
    request = event.request
    if not request.group_id:
        context.reply(event.token, LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return
    leaving = (
        request.members
        if event.version >= _FIRST_VERSION_WITH_MANY_LEAVING
        else (MemberIdentity(member_id=request.member_id),)
    )
    group = context.state.groups.get(request.group_id)
    results = [
        MemberResponse(
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            error_code=(
                ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave(group, identity, context)
            ),
        )
        for identity in leaving
    ]
    if event.version >= _FIRST_VERSION_WITH_MANY_LEAVING:
        context.reply(event.token, LeaveGroupResponse(members=results))
    else:
        context.reply(event.token, LeaveGroupResponse(error_code=results[0].error_code))
    if group is not None and any(result.error_code == ErrorCode.NONE for result in results):
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            rebalance_or_complete_join(group, context)
        else:
            maybe_complete_join(group, context)


def _leave(group: ClassicGroup, identity: MemberIdentity, context: EventContext) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        # An administrator removes a static member by its instance id alone.
        current = None if instance_id is None else group.static_members.get(instance_id)
        if current is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        drop_member(group, current, context)
        return ErrorCode.NONE
    if member_id in group.pending_members:
        drop_pending_member(group, member_id, context)
        return ErrorCode.NONE
    refusal = group.refuse_member(member_id, instance_id)
    if refusal is not None:
        return refusal
    drop_member(group, member_id, context)
    return ErrorCode.NONE


def session_ran_out(key: SessionTimer, context: EventContext) -> None:
    """The session timer of a member, or of an id given out and never used, fired."""
    group = context.state.groups.get(key.group_id)
    if group is None:
        return
    if key.member_id in group.pending_members:
        drop_pending_member(group, key.member_id, context)
    elif key.member_id in group.members:
        if group.has_satisfied_heartbeat(group.members[key.member_id]):
            return
        drop_member(group, key.member_id, context)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            prepare_rebalance(group, context)
            return
    if group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
        complete_join(group, context)
