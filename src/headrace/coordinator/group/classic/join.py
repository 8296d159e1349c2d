"""JoinGroup: a member comes, comes back, or is sent away. Pure.

Refusals are answered at once; an accepted member is parked until its round ends (`rebalance`), unless
nothing has changed for it, in which case it is told the current generation.
"""

from headrace.coordinator.group.classic import static_members
from headrace.coordinator.group.classic.member_terms import new_member, protocols_of, update_member
from headrace.coordinator.group.classic.rebalance import (
    current_generation,
    drop_member,
    drop_pending_member,
    maybe_complete_join,
    park_join,
    rebalance_or_complete_join,
)
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import JoinRequested, SessionTimer
from headrace.coordinator.group.state import ClassicGroup, GroupState, Member
from headrace.coordinator.group.stored_records import GroupMetadata, GroupRecord
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

_FIRST_VERSION_WITH_KNOWN_ID = 4
_UNKNOWN_MEMBER = ""


def join(event: JoinRequested, context: EventContext) -> None:
    """Handle a JoinGroup."""
    request = event.request
    if refusal := _refuse_request(request, context):
        _refuse(event, refusal, context)
        return
    group = context.state.groups.get(request.group_id)
    if group is None:
        if request.member_id != _UNKNOWN_MEMBER:
            _refuse(event, ErrorCode.UNKNOWN_MEMBER_ID, context)
            return
        group = _create_group(request.group_id, context)
    if not _has_room(group, request.member_id, context.settings.max_size):
        _turn_away(group, event, context)
    elif not group.supports(request.protocol_type, [p.name for p in request.protocols]):
        _refuse(event, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, context)
    elif request.member_id == _UNKNOWN_MEMBER:
        _join_as_new(group, event, context)
    elif request.member_id in group.pending_members:
        if request.group_instance_id is not None:
            # Ids are never pending for static members; no client of ours or theirs does this.
            _refuse(event, ErrorCode.UNKNOWN_SERVER_ERROR, context)
            return
        _add_member(group, event, request.member_id, context)
    else:
        _rejoin(group, event, context)


def _refuse_request(request: JoinGroupRequest, context: EventContext) -> ErrorCode | None:
    settings = context.settings
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not (
        settings.min_session_timeout_ms
        <= request.session_timeout_ms
        <= settings.max_session_timeout_ms
    ):
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return None


def _refuse(event: JoinRequested, error: ErrorCode, context: EventContext) -> None:
    context.reply(
        event.token, JoinGroupResponse(member_id=event.request.member_id, error_code=error)
    )


def _create_group(group_id: str, context: EventContext) -> ClassicGroup:
    """A group exists from its first JoinGroup on, also for a successor of this coordinator."""
    group = ClassicGroup(group_id=group_id, state_since_ms=context.now_ms)
    context.state.groups[group_id] = group
    context.records.append(
        GroupRecord(
            group_id=group_id,
            metadata=GroupMetadata(
                protocol_type="",
                generation_id=0,
                protocol_name=None,
                leader_id=None,
                state_since_ms=context.now_ms,
            ),
        )
    )
    return group


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING_REBALANCE:
        # Counting who waits, not who belongs: a group above a lowered limit shrinks, last come first out.
        return member_id in group.awaiting_join or len(group.awaiting_join) < max_size
    return member_id in group.members or len(group.members) < max_size


def _turn_away(group: ClassicGroup, event: JoinRequested, context: EventContext) -> None:
    member_id = event.request.member_id
    if member_id in group.members:
        drop_member(group, member_id, context)
    elif member_id in group.pending_members:
        drop_pending_member(group, member_id, context)
    context.reply(event.token, JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
    maybe_complete_join(group, context)


def _join_as_new(group: ClassicGroup, event: JoinRequested, context: EventContext) -> None:
    instance_id = event.request.group_instance_id
    if instance_id is not None:
        member_id = f"{instance_id}-{event.fresh_uuid}"
        if instance_id in group.static_members:
            static_members.replace(group, event, member_id, context)
        else:
            _add_member(group, event, member_id, context)
        return
    member_id = f"{event.client.id}-{event.fresh_uuid}"
    if event.version < _FIRST_VERSION_WITH_KNOWN_ID:
        _add_member(group, event, member_id, context)
        return
    _give_up_superseded_id(group, event.client.connection_id, context)
    group.pending_members[member_id] = event.client.connection_id
    context.set_timer(SessionTimer(group.group_id, member_id), event.request.session_timeout_ms)
    context.reply(
        event.token,
        JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED),
    )


def _give_up_superseded_id(
    group: ClassicGroup, connection_id: int | None, context: EventContext
) -> None:
    """A client that asks again over the same connection has lost its first id.

    Left pending, that id would hold up the round until its session timeout.
    """
    if connection_id is None:
        return
    for member_id, asked_by in group.pending_members.items():
        if asked_by == connection_id:
            drop_pending_member(group, member_id, context)
            return


def _add_member(
    group: ClassicGroup, event: JoinRequested, member_id: str, context: EventContext
) -> None:
    member = new_member(event, member_id)
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    group.add(member, event.request.protocol_type)
    park_join(group, member, event.token, context)
    # It cannot send heartbeats before it is answered, and a disconnect is not noticed while it waits.
    # Without this limit, a client that keeps retrying would leave a dead member behind each time.
    context.set_timer(
        SessionTimer(group.group_id, member_id), context.settings.new_member_join_timeout_ms
    )
    rebalance_or_complete_join(group, context)


def _rejoin(group: ClassicGroup, event: JoinRequested, context: EventContext) -> None:
    request = event.request
    refusal = group.refuse_member(request.member_id, request.group_instance_id)
    if refusal is not None:
        context.reply(
            event.token,
            JoinGroupResponse(member_id=request.member_id, error_code=refusal, protocol_name=None),
        )
        return
    member = group.members[request.member_id]
    if _needs_new_round(group, member, request):
        update_member(group, member, event)
        park_join(group, member, event.token, context)
        rebalance_or_complete_join(group, context)
    else:
        # The answer to its last JoinGroup was lost, or nothing changed: it may go on to SyncGroup.
        context.reply(event.token, current_generation(group, member.member_id))


def _needs_new_round(group: ClassicGroup, member: Member, request: JoinGroupRequest) -> bool:
    if group.state is GroupState.PREPARING_REBALANCE:
        return True
    if member.protocols != protocols_of(request):
        return True
    # The leader of a stable group rejoins to force a round: it saw a change that is not in the metadata.
    return group.state is GroupState.STABLE and group.leader_id == member.member_id
