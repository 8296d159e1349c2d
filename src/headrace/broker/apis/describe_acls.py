"""DescribeAcls (29), versions 1-3: refused with SECURITY_DISABLED, as by a Kafka without an authorizer.

Tools that copy ACLs (MirrorMaker 2) take that for what it is: there are none.
"""

from headrace.broker.requests.request_context import RequestContext
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle(request: DescribeAclsRequest, context: RequestContext) -> DescribeAclsResponse:
    return DescribeAclsResponse(
        error_code=ErrorCode.SECURITY_DISABLED,
        error_message="No Authorizer is configured on the broker",
    )
