"""AlterPartitionReassignments (45), versions 0-1: partitions move to other brokers (KIP-455).

v1 a change of the replication factor can be ruled out (KIP-860). Null replicas take a move back.
Errors, per partition: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT, NO_REASSIGNMENT_IN_PROGRESS,
INVALID_REPLICATION_FACTOR; for all: REQUEST_TIMED_OUT, NOT_CONTROLLER.
"""

from headrace.broker.cluster.controller_call import TIMED_OUT, ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.core import Controller
from headrace.controller.reassignment import AlterReassignments, PartitionAnswer
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from headrace.wire.refusal import Refusal


async def handle(
    request: AlterPartitionReassignmentsRequest,
    context: RequestContext,
    *,
    controller: Controller,
) -> AlterPartitionReassignmentsResponse:
    if request.timeout_ms <= 0:
        return _unanswered(request, TIMED_OUT)
    targets = {
        TopicPartition(topic.name, partition.partition_index): None
        if partition.replicas is None
        else tuple(partition.replicas)
        for topic in request.topics
        for partition in topic.partitions
    }
    wanted = AlterReassignments(
        targets=targets, allow_factor_change=request.allow_replication_factor_change
    )
    answers = await ask_controller(controller.ask(wanted), request.timeout_ms)
    if isinstance(answers, Refusal):
        return _unanswered(request, answers)
    results: dict[str, list[ReassignablePartitionResponse]] = {
        topic.name: [] for topic in request.topics
    }
    for answer in answers:
        results[answer.partition.topic].append(_result(answer))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        # Kafka says it like this when nothing is asked for.
        error_message=None if request.topics else "",
        responses=[
            ReassignableTopicResponse(name=name, partitions=partitions)
            for name, partitions in results.items()
        ],
    )


def _result(answer: PartitionAnswer) -> ReassignablePartitionResponse:
    is_error = answer.error is not ErrorCode.NONE
    return ReassignablePartitionResponse(
        partition_index=answer.partition.partition,
        error_code=answer.error,
        error_message=answer.message or (answer.error.message if is_error else None),
    )


def _unanswered(
    request: AlterPartitionReassignmentsRequest, why: Refusal
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=why.error_code,
        error_message=why.message,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=partition.partition_index,
                        error_code=why.error_code,
                        error_message=why.message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
