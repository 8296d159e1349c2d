"""EndTxn (26), versions 0-5: commits or aborts a transaction.

v2 PRODUCER_FENCED · v3 flexible · v4 newer error codes · v5 transaction version 2: the answer has the producer id and the epoch of the next
transaction (KIP-890). Answered once the decision is committed; the markers follow.
Errors: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED (before v2 INVALID_PRODUCER_EPOCH), INVALID_TXN_STATE,
CONCURRENT_TRANSACTIONS, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from typing import Final

from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.transaction.state import BUMPS_AT_END, ProducerIdentity
from headrace.coordinator.transaction.transactions import Transactions
from headrace.ids import ProducerId
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

_FIRST_WITH_FENCED: Final = 2
_FIRST_WITH_EPOCH_BUMP: Final = 5


async def handle(
    request: EndTxnRequest, context: RequestContext, *, transactions: Transactions
) -> EndTxnResponse:
    answer = await transactions.end(
        request.transactional_id,
        ProducerIdentity(ProducerId(request.producer_id), request.producer_epoch),
        commit=request.committed,
        client_version=BUMPS_AT_END if context.version >= _FIRST_WITH_EPOCH_BUMP else 0,
    )
    error = answer.error
    if error is ErrorCode.PRODUCER_FENCED and context.version < _FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(
        error_code=error,
        producer_id=answer.producer.producer_id,
        producer_epoch=answer.producer.epoch,
    )
