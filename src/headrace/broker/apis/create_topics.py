"""CreateTopics (19), versions 2-7: new topics.

v4 -1 for the broker's default of partitions and replicas (taken in older versions too) · v5 flexible; the answer tells
partitions, replicas and configs · v7 topic id. `validate_only` creates nothing.
Errors, per topic: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR,
INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST, POLICY_VIOLATION, REQUEST_TIMED_OUT, NOT_CONTROLLER.
"""

from typing import Final

from headrace.broker.cluster.controller_call import TIMED_OUT, ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.core import Controller
from headrace.controller.topics import CreateTopics, NewTopic, TopicAnswer
from headrace.internal_topics import CLUSTER_METADATA
from headrace.settings.describe import describe_created_topic
from headrace.settings.live_settings import LiveSettings
from headrace.settings.resolution import ConfigLayers
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from headrace.wire.refusal import Refusal

_FIRST_WITH_CONFIGS: Final = 5


async def handle(
    request: CreateTopicsRequest,
    context: RequestContext,
    *,
    controller: Controller,
    live_settings: LiveSettings,
) -> CreateTopicsResponse:
    names = list(dict.fromkeys(topic.name for topic in request.topics))
    if request.timeout_ms <= 0:
        return _unanswered(names, TIMED_OUT)
    wanted = tuple(_wanted(topic) for topic in request.topics if topic.name != CLUSTER_METADATA)
    answers = await ask_controller(
        controller.ask(CreateTopics(topics=wanted, validate_only=request.validate_only)),
        request.timeout_ms,
    )
    if isinstance(answers, Refusal):
        return _unanswered(names, answers)
    layers = live_settings.current.layers
    results = [_result(answer, layers, context.version) for answer in answers]
    if CLUSTER_METADATA in names:
        results.append(
            CreatableTopicResult(
                name=CLUSTER_METADATA,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=f"Creation of internal topic {CLUSTER_METADATA} is prohibited.",
            )
        )
    return CreateTopicsResponse(topics=results)


def _wanted(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=tuple(
            (assignment.partition_index, tuple(assignment.broker_ids))
            for assignment in topic.assignments
        ),
        configs={config.name: config.value for config in topic.configs},
    )


def _unanswered(names: list[str], why: Refusal) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=name, error_code=why.error_code, error_message=why.message)
            for name in names
        ]
    )


def _result(answer: TopicAnswer, layers: ConfigLayers, version: int) -> CreatableTopicResult:
    assert answer.name is not None, "topics are created by name"
    result = CreatableTopicResult(
        name=answer.name, error_code=answer.error, error_message=answer.message
    )
    if answer.error is not ErrorCode.NONE:
        return result
    result.topic_id = answer.topic_id
    result.num_partitions = answer.num_partitions
    result.replication_factor = answer.replication_factor
    if version >= _FIRST_WITH_CONFIGS:
        result.configs = [
            CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in describe_created_topic(answer.configs, layers)
        ]
    return result
