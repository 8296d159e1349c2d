"""DeleteGroups (42), versions 0-2: groups without members go, with their offsets.

v1 throttle time · v2 flexible.
Errors, per group: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, NON_EMPTY_GROUP,
GROUP_ID_NOT_FOUND.
"""

from headrace.broker.group_portions import portions
from headrace.broker.request import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(
    request: DeleteGroupsRequest, context: RequestContext, *, groups: Groups
) -> DeleteGroupsResponse:
    results: list[DeletableGroupResult] = []
    async for group_ids in portions(list(dict.fromkeys(request.groups_names))):
        portion = DeleteGroupsRequest(groups_names=group_ids)
        results += (await groups.delete_groups(portion)).results
    return DeleteGroupsResponse(results=results)
