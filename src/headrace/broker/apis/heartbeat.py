"""Heartbeat (12), versions 0-4: a member lives.

v1 throttle time · v3 static members · v4 flexible.
Errors: COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION,
REBALANCE_IN_PROGRESS, FENCED_INSTANCE_ID.
"""

from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def handle(
    request: HeartbeatRequest, context: RequestContext, *, groups: Groups
) -> HeartbeatResponse:
    return await groups.heartbeat(request)
