"""PullChanges (1000), version 0: a broker follows the controller's changes, in order, and waits for the next.

Errors: NOT_CONTROLLER, with the id of who is, if that is known.
"""

from headrace.broker.request import RequestContext
from headrace.controller.changes import encode
from headrace.controller.driver import ControllerDriver, NotController
from headrace.wire.error_code import ErrorCode
from headrace.wire.internal import PullChangesRequest, PullChangesResponse


async def handle(
    request: PullChangesRequest, context: RequestContext, *, driver: ControllerDriver
) -> PullChangesResponse:
    try:
        batch = await driver.pull(
            request.controller_epoch, request.offset, max_wait_ms=request.max_wait_ms
        )
    except NotController as elsewhere:
        return PullChangesResponse(
            error_code=ErrorCode.NOT_CONTROLLER, controller_id=elsewhere.controller_id
        )
    return PullChangesResponse(batch=encode(batch))
