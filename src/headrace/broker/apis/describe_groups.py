"""DescribeGroups (15), versions 0-6: state, protocol and members of groups.

v1 throttle time · v3 authorized operations · v4 instance ids · v5 flexible · v6 error message; a missing group is
GROUP_ID_NOT_FOUND, before that a group in state Dead.
Errors, per group: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, GROUP_ID_NOT_FOUND, and
INVALID_REQUEST for what would make the answer larger than `array_answer.MAX_ITEM_BYTES`.
"""

from headrace.broker.requests.array_answer import TOO_LARGE, ArrayAnswer, EncodedAnswer
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.security.authorized_operations import GROUP_OPERATIONS
from headrace.coordinator.group.groups import Groups
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)


async def handle(
    request: DescribeGroupsRequest, context: RequestContext, *, groups: Groups, long_work: LongWork
) -> EncodedAnswer:
    answer = ArrayAnswer(
        DescribeGroupsResponse(), DescribedGroup, context.version, long_work.slices()
    )
    for group_id in request.groups:
        if answer.is_full:
            group = _too_large(group_id)
        else:
            one = DescribeGroupsRequest(groups=[group_id])
            (group,) = (await groups.describe_groups(context.version, one)).groups
        if request.include_authorized_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = GROUP_OPERATIONS
        await answer.add(group)
    return answer.encoded()


def _too_large(group_id: str) -> DescribedGroup:
    return DescribedGroup(
        group_id=group_id, error_code=ErrorCode.INVALID_REQUEST, error_message=TOO_LARGE
    )
