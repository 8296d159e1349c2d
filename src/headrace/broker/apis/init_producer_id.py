"""InitProducerId (22), versions 0-5: an id for an idempotent producer.

v2 flexible · v3 the producer's last id and epoch; without a transactional id it gets a fresh id all the same · v4, v5 newer
error codes. (v6 is not stable in Kafka 4.3.)
Errors: INVALID_REQUEST, COORDINATOR_LOAD_IN_PROGRESS while the controller gives no ids.
Left out: transactional ids, refused with INVALID_REQUEST; FindCoordinator tells the client why.
"""

from typing import Final

from headrace.broker.cluster.controller_call import ask_controller
from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.requests.request_context import RequestContext
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.refusal import Refusal

LAST_VERSION: Final = 5
_NONE: Final = -1


async def handle(
    request: InitProducerIdRequest, context: RequestContext, *, producer_ids: ProducerIds
) -> InitProducerIdResponse:
    has_only_one = (request.producer_id == _NONE) != (request.producer_epoch == _NONE)
    if request.transactional_id is not None or has_only_one:
        return _refused(ErrorCode.INVALID_REQUEST)
    producer_id = await ask_controller(producer_ids.next_id())
    if producer_id is None or isinstance(producer_id, Refusal):
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
