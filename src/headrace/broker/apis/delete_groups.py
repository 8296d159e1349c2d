"""DeleteGroups (42), versions 0-2: groups without members go, with their offsets.

v1 throttle time · v2 flexible.
Errors, per group: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, NON_EMPTY_GROUP,
GROUP_ID_NOT_FOUND.
"""

from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)


async def handle(
    request: DeleteGroupsRequest, context: RequestContext, *, groups: Groups, long_work: LongWork
) -> DeleteGroupsResponse:
    results: list[DeletableGroupResult] = []
    slices = long_work.slices()
    for group_id in dict.fromkeys(request.groups_names):
        one = DeleteGroupsRequest(groups_names=[group_id])
        results += (await groups.delete_groups(one)).results
        await slices.pause()
    return DeleteGroupsResponse(results=results)
