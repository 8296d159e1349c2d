"""SyncGroup (14), versions 0-5: a member asks for its share of the assignment; the leader brings it.

v1 throttle time · v3 static members · v4 flexible · v5 protocol type and name, which must be the group's.
Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID,
ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS, INCONSISTENT_GROUP_PROTOCOL, FENCED_INSTANCE_ID.
"""

from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def handle(
    request: SyncGroupRequest, context: RequestContext, *, groups: Groups
) -> SyncGroupResponse:
    return await groups.sync(context.version, request)
