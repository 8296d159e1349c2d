"""AskController (1001), version 0: a broker has something for the controller to decide.

Errors: NOT_CONTROLLER, with the id of who is, if that is known; KAFKA_STORAGE_ERROR if the decision could not be stored;
UNSUPPORTED_VERSION for what a newer broker asks and this one does not know.
"""

import logging

from headrace.broker.requests.request_context import RequestContext
from headrace.controller.controller_requests import decode_event, encode_answer
from headrace.controller.driver import ControllerDriver, NotController
from headrace.coordination.store import StoreFailed
from headrace.errors import MalformedMessage
from headrace.wire.error_code import ErrorCode
from headrace.wire.internal import AskControllerRequest, AskControllerResponse

_logger = logging.getLogger(__name__)


async def handle(
    request: AskControllerRequest, context: RequestContext, *, driver: ControllerDriver
) -> AskControllerResponse:
    try:
        event = decode_event(request.kind, bytes(request.event))
    except MalformedMessage as error:
        _logger.error(
            "client %s asks what this controller does not know: %s. Upgrade this broker, or all of them to "
            "one version",
            context.client_id,
            error,
        )
        return AskControllerResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    try:
        answer = await driver.ask(event)
    except NotController as elsewhere:
        return AskControllerResponse(
            error_code=ErrorCode.NOT_CONTROLLER, controller_id=elsewhere.controller_id
        )
    except StoreFailed:
        return AskControllerResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    return AskControllerResponse(answer=encode_answer(answer))
