"""DeleteAcls (31), versions 1-3: each filter is refused with SECURITY_DISABLED, as by a Kafka without an authorizer."""

from headrace.broker.requests.request_context import RequestContext
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
)


def handle(request: DeleteAclsRequest, context: RequestContext) -> DeleteAclsResponse:
    refused = DeleteAclsFilterResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return DeleteAclsResponse(filter_results=[refused for _ in request.filters])
