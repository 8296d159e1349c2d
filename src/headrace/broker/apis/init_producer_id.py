"""InitProducerId (22), versions 0-5: an id and an epoch for an idempotent or a transactional producer.

v2 flexible · v3 the producer's last id and epoch (KIP-360): a transactional producer goes on with them, without a transactional id it gets
a fresh id all the same · v4 PRODUCER_FENCED · v5 newer error codes. (v6 is not stable in Kafka 4.3.)
Errors: INVALID_REQUEST; COORDINATOR_LOAD_IN_PROGRESS, also while the controller gives no ids; for transactional ids
INVALID_TRANSACTION_TIMEOUT, PRODUCER_FENCED (before v4 INVALID_PRODUCER_EPOCH), CONCURRENT_TRANSACTIONS while the last transaction is ending,
NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE.
"""

from typing import Final

from headrace.broker.cluster.controller_call import ask_controller
from headrace.broker.cluster.producer_ids import ProducerIds
from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.transaction.state import ProducerIdentity
from headrace.coordinator.transaction.transactions import Transactions
from headrace.ids import ProducerId
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from headrace.wire.refusal import Refusal

LAST_VERSION: Final = 5
_FIRST_WITH_FENCED: Final = 4
_NONE: Final = -1


async def handle(
    request: InitProducerIdRequest,
    context: RequestContext,
    *,
    producer_ids: ProducerIds,
    transactions: Transactions,
) -> InitProducerIdResponse:
    has_only_one = (request.producer_id == _NONE) != (request.producer_epoch == _NONE)
    if has_only_one:
        return _refused(ErrorCode.INVALID_REQUEST)
    if request.transactional_id is not None:
        return await _initialize(request, request.transactional_id, context.version, transactions)
    producer_id = await ask_controller(producer_ids.next_id())
    if producer_id is None or isinstance(producer_id, Refusal):
        return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _initialize(
    request: InitProducerIdRequest, transactional_id: str, version: int, transactions: Transactions
) -> InitProducerIdResponse:
    expected = None
    if request.producer_id != _NONE:
        expected = ProducerIdentity(ProducerId(request.producer_id), request.producer_epoch)
    answer = await transactions.initialize_producer(
        transactional_id, request.transaction_timeout_ms, expected
    )
    if answer.error is ErrorCode.PRODUCER_FENCED and version < _FIRST_WITH_FENCED:
        return _refused(ErrorCode.INVALID_PRODUCER_EPOCH)
    return InitProducerIdResponse(
        error_code=answer.error,
        producer_id=answer.producer.producer_id,
        producer_epoch=answer.producer.epoch,
    )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=_NONE, producer_epoch=_NONE)
