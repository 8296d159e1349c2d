"""LeaveGroup (13), versions 0-5: members go.

v1 throttle time · v3 several members at once, by instance id too · v4 flexible · v5 reason.
Errors, of the whole and per member: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR,
INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
"""

from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse


async def handle(
    request: LeaveGroupRequest, context: RequestContext, *, groups: Groups
) -> LeaveGroupResponse:
    return await groups.leave(context.version, request)
