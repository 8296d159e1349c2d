"""PullChanges (1000), version 0: a broker follows the controller's changes, in order, and waits for the next.

A connection that ends while its broker waits may mean that the broker has died.

Errors: NOT_CONTROLLER, with the id of who is, if that is known.
"""

import asyncio

from headrace.broker.cluster.dead_broker_removal import DeadBrokerRemoval
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.changes import encode
from headrace.controller.driver import ControllerDriver, NotController
from headrace.wire.error_code import ErrorCode
from headrace.wire.internal import BROKER_CLIENT, PullChangesRequest, PullChangesResponse


async def handle(
    request: PullChangesRequest,
    context: RequestContext,
    *,
    driver: ControllerDriver,
    dead_broker_removal: DeadBrokerRemoval,
) -> PullChangesResponse:
    try:
        batch = await driver.pull(
            request.controller_epoch, request.offset, max_wait_ms=request.max_wait_ms
        )
    except NotController as elsewhere:
        return PullChangesResponse(
            error_code=ErrorCode.NOT_CONTROLLER, controller_id=elsewhere.controller_id
        )
    except asyncio.CancelledError:
        client, _, broker_id = context.client_id.rpartition("-")
        if client == BROKER_CLIENT and broker_id.isdecimal():
            dead_broker_removal.connection_broke(int(broker_id))
        raise
    return PullChangesResponse(batch=encode(batch))
