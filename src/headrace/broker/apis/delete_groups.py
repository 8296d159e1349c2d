"""DeleteGroups (42), versions 0-2: groups without members go, with their offsets.

v1 throttle time · v2 flexible.
Errors, per group: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, NON_EMPTY_GROUP,
GROUP_ID_NOT_FOUND.
"""

from headrace.broker.request import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(
    request: DeleteGroupsRequest, context: RequestContext, *, groups: Groups
) -> DeleteGroupsResponse:
    return await groups.delete_groups(request)
