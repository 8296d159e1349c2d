"""CreateAcls (30), versions 1-3: each is refused with SECURITY_DISABLED, as by a Kafka without an authorizer."""

from headrace.broker.requests.request_context import RequestContext
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.create_acls import (
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)


def handle(request: CreateAclsRequest, context: RequestContext) -> CreateAclsResponse:
    refused = AclCreationResult(
        error_code=ErrorCode.SECURITY_DISABLED, error_message="No Authorizer is configured."
    )
    return CreateAclsResponse(results=[refused for _ in request.creations])
