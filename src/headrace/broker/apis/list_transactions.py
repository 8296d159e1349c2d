"""ListTransactions (66), versions 0-1: the transactional ids that this broker coordinates.

Filters by state and by producer id · v1 by how long the transaction has been open.
Errors: COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
Left out: v2, a filter by a regular expression (KIP-1152). Kafka's are evaluated in linear time; Python's could keep the broker busy for ever.
"""

from typing import Final

from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.transaction.state import Status
from headrace.coordinator.transaction.transactions import Transactions
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)

LAST_VERSION: Final = 1
# Kafka knows two more states, in memory only and for a moment: a filter by them finds nothing.
_KNOWN_STATES: Final = frozenset((*(each.value for each in Status), "Dead", "PrepareEpochFence"))


async def handle(
    request: ListTransactionsRequest, context: RequestContext, *, transactions: Transactions
) -> ListTransactionsResponse:
    listed = await transactions.list_all(
        states=frozenset(request.state_filters),
        producer_ids=frozenset(request.producer_id_filters),
        longer_than_ms=request.duration_filter,
        matches=lambda _: True,
    )
    if isinstance(listed, ErrorCode):
        return ListTransactionsResponse(error_code=listed)
    return ListTransactionsResponse(
        unknown_state_filters=sorted(set(request.state_filters) - _KNOWN_STATES),
        transaction_states=listed,
    )
