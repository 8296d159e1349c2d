"""CreatePartitions (37), versions 0-3: more partitions for topics. v2 flexible.

Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT,
INVALID_REPLICATION_FACTOR, INVALID_REQUEST, POLICY_VIOLATION, REQUEST_TIMED_OUT, NOT_CONTROLLER.
"""

from headrace.broker.cluster.controller_call import TIMED_OUT, ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.core import Controller
from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from headrace.wire.refusal import Refusal


async def handle(
    request: CreatePartitionsRequest, context: RequestContext, *, controller: Controller
) -> CreatePartitionsResponse:
    names = list(dict.fromkeys(topic.name for topic in request.topics))
    if request.timeout_ms <= 0:
        return _unanswered(names, TIMED_OUT)
    wanted = CreatePartitions(
        topics=tuple(map(_wanted, request.topics)), validate_only=request.validate_only
    )
    answers = await ask_controller(controller.ask(wanted), request.timeout_ms)
    if isinstance(answers, Refusal):
        return _unanswered(names, answers)
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=answer.name or "", error_code=answer.error, error_message=answer.message
            )
            for answer in answers
        ]
    )


def _wanted(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = topic.assignments
    return MorePartitions(
        name=topic.name,
        count=topic.count,
        assignments=None
        if assignments is None
        else tuple(tuple(assignment.broker_ids) for assignment in assignments),
    )


def _unanswered(names: list[str], why: Refusal) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(
                name=name, error_code=why.error_code, error_message=why.message
            )
            for name in names
        ]
    )
