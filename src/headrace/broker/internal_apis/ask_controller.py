"""AskController (1001), version 0: a broker has something for the controller to decide.

Errors: NOT_CONTROLLER, with the id of who is, if that is known; KAFKA_STORAGE_ERROR if the decision could not be stored.
"""

from headrace.broker.request import RequestContext
from headrace.controller.driver import ControllerDriver, NotController
from headrace.controller.questions import decode_event, encode_answer
from headrace.coordination.store import StoreFailed
from headrace.wire.error_code import ErrorCode
from headrace.wire.internal import AskControllerRequest, AskControllerResponse


async def handle(
    request: AskControllerRequest, context: RequestContext, *, driver: ControllerDriver
) -> AskControllerResponse:
    event = decode_event(request.kind, bytes(request.event))
    try:
        answer = await driver.ask(event)
    except NotController as elsewhere:
        return AskControllerResponse(
            error_code=ErrorCode.NOT_CONTROLLER, controller_id=elsewhere.controller_id
        )
    except StoreFailed:
        return AskControllerResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    return AskControllerResponse(answer=encode_answer(answer))
