"""DescribeGroups (15), versions 0-6: state, protocol and members of groups.

v1 throttle time · v3 authorized operations · v4 instance ids · v5 flexible · v6 error message; a missing group is
GROUP_ID_NOT_FOUND, before that a group in state Dead.
Errors, per group: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_ID_NOT_FOUND.
"""

from headrace.broker.authorized_operations import GROUP_OPERATIONS
from headrace.broker.group_portions import portions
from headrace.broker.request import RequestContext
from headrace.coordinator.group.groups import Groups
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


async def handle(
    request: DescribeGroupsRequest, context: RequestContext, *, groups: Groups
) -> DescribeGroupsResponse:
    described: list[DescribedGroup] = []
    async for group_ids in portions(request.groups):
        portion = DescribeGroupsRequest(groups=group_ids)
        described += (await groups.describe_groups(context.version, portion)).groups
    if request.include_authorized_operations:
        for group in described:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = GROUP_OPERATIONS
    return DescribeGroupsResponse(groups=described)
