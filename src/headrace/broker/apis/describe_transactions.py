"""DescribeTransactions (65), version 0: state, producer and partitions of transactional ids.

Errors, per transactional id: INVALID_REQUEST, TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
COORDINATOR_NOT_AVAILABLE.
"""

from headrace.broker.requests.array_answer import ArrayAnswer, EncodedAnswer
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.coordinator.transaction.transactions import Transactions
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)


async def handle(
    request: DescribeTransactionsRequest,
    context: RequestContext,
    *,
    transactions: Transactions,
    long_work: LongWork,
) -> EncodedAnswer:
    answer = ArrayAnswer(
        DescribeTransactionsResponse(), TransactionState, context.version, long_work.slices()
    )
    for transactional_id in request.transactional_ids:
        if answer.is_full:
            described = TransactionState(
                transactional_id=transactional_id, error_code=ErrorCode.INVALID_REQUEST
            )
        else:
            described = await transactions.describe(transactional_id)
        await answer.add(described)
    return answer.encoded()
