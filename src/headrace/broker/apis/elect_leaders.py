"""ElectLeaders (43), versions 0-2: have preferred leaders elected, or leaders at any price where there is none.

v1 election type (before: preferred), error of the whole · v2 flexible. Null partitions are all, and then those that need
no election are not mentioned.
Errors, per partition: ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE,
UNKNOWN_TOPIC_OR_PARTITION, REQUEST_TIMED_OUT, NOT_CONTROLLER; for all: INVALID_REQUEST for an unknown election type.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.controller_call import TIMED_OUT, ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.core import Controller
from headrace.controller.leaders import ElectionType, ElectLeaders
from headrace.controller.reassignment import PartitionAnswer
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from headrace.wire.refusal import Refusal

_TYPES: Final = {election_type.value: election_type for election_type in ElectionType}


async def handle(
    request: ElectLeadersRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    controller: Controller,
) -> ElectLeadersResponse:
    wanted = _wanted(request)
    election_type = _TYPES.get(request.election_type)
    if election_type is None:
        text = f"Unknown election type {request.election_type}"
        return _unanswered(wanted, Refusal(ErrorCode.INVALID_REQUEST, text))
    if request.timeout_ms <= 0:
        return _unanswered(wanted, TIMED_OUT)
    answers = await ask_controller(
        controller.ask(ElectLeaders(election_type=election_type, partitions=wanted)),
        request.timeout_ms,
    )
    if isinstance(answers, Refusal):
        return _unanswered(wanted, answers)
    # Every topic that was asked for is mentioned, be it with nothing.
    asked = request.topic_partitions
    topics = cluster.state.topics if asked is None else [topic.topic for topic in asked]
    return ElectLeadersResponse(replica_election_results=_by_topic(answers, topics))


def _wanted(request: ElectLeadersRequest) -> tuple[TopicPartition, ...] | None:
    if request.topic_partitions is None:
        return None
    return tuple(
        TopicPartition(topic.topic, index)
        for topic in request.topic_partitions
        for index in topic.partitions
    )


def _by_topic(
    answers: Sequence[PartitionAnswer], topics: Iterable[str] = ()
) -> list[ReplicaElectionResult]:
    results: dict[str, list[PartitionResult]] = {name: [] for name in topics}
    for answer in answers:
        is_error = answer.error is not ErrorCode.NONE
        results.setdefault(answer.partition.topic, []).append(
            PartitionResult(
                partition_id=answer.partition.partition,
                error_code=answer.error,
                error_message=answer.message or (answer.error.message if is_error else None),
            )
        )
    return [
        ReplicaElectionResult(topic=name, partition_result=found) for name, found in results.items()
    ]


def _unanswered(wanted: tuple[TopicPartition, ...] | None, why: Refusal) -> ElectLeadersResponse:
    answers = [
        PartitionAnswer(partition=where, error=why.error_code, message=why.message)
        for where in dict.fromkeys(wanted or ())
    ]
    return ElectLeadersResponse(
        error_code=why.error_code, replica_election_results=_by_topic(answers)
    )
