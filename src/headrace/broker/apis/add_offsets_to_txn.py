"""AddOffsetsToTxn (25), versions 0-4: a group's offsets take part in a transaction, by their partition of `__consumer_offsets`.

v2 PRODUCER_FENCED · v3 flexible · v4 newer error codes. Under transaction version 2 the group's coordinator adds it by itself.
Errors: INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED (before v2 INVALID_PRODUCER_EPOCH), CONCURRENT_TRANSACTIONS,
NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE.
"""

from typing import Final

from headrace.broker.coordinators.coordinator_table import CoordinatorTable, KeyType
from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.transaction.state import ProducerIdentity
from headrace.coordinator.transaction.transactions import Transactions
from headrace.ids import ProducerId, TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

_FIRST_WITH_FENCED: Final = 2
_CLIENT_VERSION: Final = 0


async def handle(
    request: AddOffsetsToTxnRequest,
    context: RequestContext,
    *,
    coordinators: CoordinatorTable,
    transactions: Transactions,
) -> AddOffsetsToTxnResponse:
    groups = coordinators.for_key_type(KeyType.GROUP)
    assert groups is not None, "every broker coordinates groups"
    partition = TopicPartition(groups.topic, groups.runtime.partition_for(request.group_id))
    error = await transactions.add_partitions(
        request.transactional_id,
        ProducerIdentity(ProducerId(request.producer_id), request.producer_epoch),
        frozenset((partition,)),
        _CLIENT_VERSION,
    )
    if error is ErrorCode.PRODUCER_FENCED and context.version < _FIRST_WITH_FENCED:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)
