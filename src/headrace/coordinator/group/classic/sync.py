"""SyncGroup: the leader hands in the assignment, everyone takes its share away. Pure.

The generation becomes stable when its record has been stored (`settle`, called by replay); the shares
leave with the same outcome, so nobody learns an assignment that was not committed.
"""

from headrace.coordinator.group.classic.rebalance import answer_sync, restart_session
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import SyncRequested, SyncTimer
from headrace.coordinator.group.state import ClassicGroup, GroupState
from headrace.coordinator.group.stored_records import GroupMetadata, GroupRecord
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FIRST_VERSION_WITH_PROTOCOL = 5


def sync(event: SyncRequested, context: EventContext) -> None:
    """Handle a SyncGroup."""
    request = event.request
    group = context.state.groups.get(request.group_id)
    refusal = _refuse(group, event)
    if refusal is not None:
        context.reply(event.token, SyncGroupResponse(error_code=refusal))
        return
    assert group is not None
    member_id = request.member_id
    group.pending_sync.discard(member_id)
    if not group.pending_sync:
        context.cancel_timer(SyncTimer(group.group_id))
    if group.state is GroupState.STABLE:
        context.reply(event.token, _share(group, group.members[member_id].assignment))
        return
    outdated = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    answer_sync(group, member_id, outdated, context)
    group.awaiting_sync[member_id] = event.token
    if group.leader_id == member_id:
        _assign(group, request, context)


def _refuse(group: ClassicGroup | None, event: SyncRequested) -> ErrorCode | None:
    request = event.request
    if event.version >= _FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    refusal = group.refuse_member(request.member_id, request.group_instance_id)
    if refusal is not None:
        return refusal
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type) or _differ(
        request.protocol_name, group.protocol_name
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return None


def _differ(asked: str | None, current: str | None) -> bool:
    return asked is not None and current is not None and asked != current


def _share(group: ClassicGroup, assignment: bytes) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        assignment=assignment,
    )


def _assign(group: ClassicGroup, request: SyncGroupRequest, context: EventContext) -> None:
    assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
    context.records.append(
        GroupRecord(group_id=group.group_id, metadata=group.as_metadata(assignments))
    )
    for member in group.members.values():
        share = _share(group, assignments.get(member.member_id, b""))
        if answer_sync(group, member.member_id, share, context):
            # A session that ran out while the member was waiting here was not held against it.
            restart_session(group, member, context)


def settle(group: ClassicGroup, metadata: GroupMetadata) -> None:
    """The record of a generation is stored: if it is the one being completed, it is stable now."""
    if (
        group.state is GroupState.COMPLETING_REBALANCE
        and metadata.generation_id == group.generation_id
    ):
        for stored in metadata.members:
            group.members[stored.member_id].assignment = stored.assignment
        group.transition_to(GroupState.STABLE, metadata.state_since_ms)
