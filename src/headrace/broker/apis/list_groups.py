"""ListGroups (16), versions 0-5: the groups that this broker coordinates.

v1 throttle time · v3 flexible · v4 states, and a filter by them · v5 types, and a filter by them.
Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


async def handle(
    request: ListGroupsRequest, context: RequestContext, *, groups: Groups
) -> ListGroupsResponse:
    return await groups.list_groups(request)
