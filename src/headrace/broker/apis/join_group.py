"""JoinGroup (11), versions 0-9: become a member of a group. Answered when the round of the rebalance ends.

v1 rebalance timeout · v2 throttle time · v4 a new member gets its id first (MEMBER_ID_REQUIRED) · v5 static members ·
v6 flexible · v7 protocol type in the answer · v8 reason · v9 skip_assignment.
Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, INVALID_GROUP_ID, UNKNOWN_MEMBER_ID,
INVALID_SESSION_TIMEOUT, INCONSISTENT_GROUP_PROTOCOL, MEMBER_ID_REQUIRED, FENCED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED,
REBALANCE_IN_PROGRESS. Clients offer a handful of protocols; more than a hundred are refused, because each is kept for each member.
"""

from typing import Final

from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.events import Client
from headrace.coordinator.group.groups import Groups
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

_MOST_PROTOCOLS: Final = 100


async def handle(
    request: JoinGroupRequest, context: RequestContext, *, groups: Groups
) -> JoinGroupResponse:
    if len(request.protocols) > _MOST_PROTOCOLS:
        return JoinGroupResponse(
            error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=request.member_id
        )
    client = Client(
        id=context.client_id,
        host=context.client_host,
        connection_id=context.connection.connection_id,
    )
    return await groups.join(client, context.version, request)
