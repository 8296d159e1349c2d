"""ListPartitionReassignments (46), version 0: which partitions are on their way to other brokers (KIP-455).

Null topics are all. Partitions that do not move, or do not exist, are not mentioned. The controller itself answers, so that
a move begun through one broker is seen through any.
Errors, for all: REQUEST_TIMED_OUT, NOT_CONTROLLER.
"""

from headrace.broker.cluster.controller_call import ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.core import Controller
from headrace.controller.reassignment import ListReassignments
from headrace.ids import TopicPartition
from headrace.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from headrace.wire.refusal import Refusal


async def handle(
    request: ListPartitionReassignmentsRequest,
    context: RequestContext,
    *,
    controller: Controller,
) -> ListPartitionReassignmentsResponse:
    wanted = ListReassignments(
        partitions=None
        if request.topics is None
        else tuple(
            TopicPartition(topic.name, index)
            for topic in request.topics
            for index in topic.partition_indexes
        )
    )
    # As in Kafka, no time-out of 0 or less is held against a request that only looks.
    timeout_ms = request.timeout_ms if request.timeout_ms > 0 else None
    moves = await ask_controller(controller.ask(wanted), timeout_ms)
    if isinstance(moves, Refusal):
        return _unanswered(moves)
    by_topic: dict[str, list[OngoingPartitionReassignment]] = {}
    for move in moves:
        by_topic.setdefault(move.partition.topic, []).append(
            OngoingPartitionReassignment(
                partition_index=move.partition.partition,
                replicas=move.replicas,
                adding_replicas=move.adding,
                removing_replicas=move.removing,
            )
        )
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(name=name, partitions=partitions)
            for name, partitions in by_topic.items()
        ],
    )


def _unanswered(why: Refusal) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=why.error_code, error_message=why.message)
