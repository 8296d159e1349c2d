"""Static members (KIP-345): an instance that comes back takes its old place under a new member id. Pure.

If the group is stable and would choose the same protocol, no round is needed: the record is rewritten
with the new id and the member is told the current generation. A returning *leader* must not assign
anew: from version 9 on it is told to skip the assignment; before, it is told that its old id leads, so
that it acts as a follower.
"""

from headrace.coordinator.group.classic.member_terms import update_member
from headrace.coordinator.group.classic.rebalance import (
    answer_join,
    answer_sync,
    current_generation,
    park_join,
    rebalance_or_complete_join,
    restart_session,
)
from headrace.coordinator.group.event_context import EventContext
from headrace.coordinator.group.events import JoinRequested, SessionTimer
from headrace.coordinator.group.state import ClassicGroup, GroupState, Member
from headrace.coordinator.group.stored_records import GroupRecord
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.join_group import JoinGroupResponse
from headrace.wire.messages.sync_group import SyncGroupResponse

_FIRST_VERSION_WITH_SKIP_ASSIGNMENT = 9


def replace(
    group: ClassicGroup, event: JoinRequested, new_member_id: str, context: EventContext
) -> None:
    """The instance joins without a member id while the group knows one for it."""
    instance_id = event.request.group_instance_id
    assert instance_id is not None, event
    former_leader_id = group.leader_id
    member = group.members[group.static_members[instance_id]]
    _fence(group, member.member_id, context)
    group.rename_static_member(member, new_member_id)
    update_member(group, member, event)
    restart_session(group, member, context)
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        _keep_generation(group, member, event, former_leader_id or "", context)
    else:
        # While the leader is assigning (CompletingRebalance) a new round is needed too: its assignment
        # would be for the old id.
        park_join(group, member, event.token, context)
        rebalance_or_complete_join(group, context)


def _fence(group: ClassicGroup, old_member_id: str, context: EventContext) -> None:
    """Whoever still waits under the old id is a double, and must stop."""
    error = ErrorCode.FENCED_INSTANCE_ID
    answer_join(
        group,
        old_member_id,
        JoinGroupResponse(member_id=old_member_id, protocol_name=None, error_code=error),
        context,
    )
    answer_sync(group, old_member_id, SyncGroupResponse(error_code=error), context)
    context.cancel_timer(SessionTimer(group.group_id, old_member_id))


def _keep_generation(
    group: ClassicGroup,
    member: Member,
    event: JoinRequested,
    former_leader_id: str,
    context: EventContext,
) -> None:
    assignments = {each.member_id: each.assignment for each in group.members.values()}
    context.records.append(
        GroupRecord(group_id=group.group_id, metadata=group.as_metadata(assignments))
    )
    answer = current_generation(group, member.member_id)
    if event.version >= _FIRST_VERSION_WITH_SKIP_ASSIGNMENT:
        answer.skip_assignment = group.leader_id == member.member_id
    else:
        answer.leader, answer.members = former_leader_id, ()
    context.reply(event.token, answer)
