"""DeleteTopics (20), versions 1-6: topics go, by name or by id.

v4 flexible · v5 error message · v6 topic ids.
Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST for one that is named twice, both ways or
not at all, TOPIC_DELETION_DISABLED (before v3 INVALID_REQUEST), REQUEST_TIMED_OUT, NOT_CONTROLLER.
"""

from collections import Counter
from typing import Final
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.controller_call import TIMED_OUT, ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.core import Controller
from headrace.controller.deletions import DeleteTopics
from headrace.controller.topics import TopicAnswer
from headrace.ids import NO_TOPIC_ID
from headrace.settings.live_settings import LiveSettings
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from headrace.wire.refusal import Refusal

_FIRST_WITH_DELETION_DISABLED: Final = 3
_FIRST_WITH_IDS: Final = 6


async def handle(
    request: DeleteTopicsRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    controller: Controller,
    live_settings: LiveSettings,
) -> DeleteTopicsResponse:
    asked = (
        list(request.topics)
        if context.version >= _FIRST_WITH_IDS
        else [DeleteTopicState(name=name) for name in request.topic_names]
    )
    if not live_settings.current.delete_topic_enable:
        return _disabled(asked, context.version)
    if request.timeout_ms <= 0:
        return _unanswered(asked, TIMED_OUT)
    wanted = _DeletionTargets(asked, cluster)
    answers = await ask_controller(
        controller.ask(DeleteTopics(names=tuple(wanted.names), topic_ids=tuple(wanted.topic_ids))),
        request.timeout_ms,
    )
    if isinstance(answers, Refusal):
        return _unanswered(asked, answers)
    return DeleteTopicsResponse(responses=[*wanted.refused, *map(_result, answers)])


class _DeletionTargets:
    """The topics to be deleted, and those of which the request does not say clearly what it means."""

    def __init__(self, asked: list[DeleteTopicState], cluster: ClusterView) -> None:
        self.names: list[str] = []
        self.topic_ids: list[UUID] = []
        self.refused: list[DeletableTopicResult] = []
        times = Counter((one.name, one.topic_id) for one in asked)
        by_id = cluster.state.topics_by_id
        named_by_id = {
            topic.name
            for name, topic_id in times
            if name is None and (topic := by_id.get(topic_id)) is not None
        }
        for name, topic_id in times:
            topic = by_id.get(topic_id) if name is None else None
            text = _fault(name, topic_id, times[name, topic_id])
            if text is not None:
                self._refuse(name, topic_id, text)
            elif topic is not None and (topic.name, NO_TOPIC_ID) in times:
                text = "The provided topic name maps to an ID that was already supplied."
                self._refuse(topic.name, topic_id, text)
            elif name is None:
                self.topic_ids.append(topic_id)
            elif name not in named_by_id:
                self.names.append(name)

    def _refuse(self, name: str | None, topic_id: UUID, text: str) -> None:
        self.refused.append(
            DeletableTopicResult(
                name=name,
                topic_id=topic_id,
                error_code=ErrorCode.INVALID_REQUEST,
                error_message=text,
            )
        )


def _fault(name: str | None, topic_id: UUID, times: int) -> str | None:
    if topic_id == NO_TOPIC_ID:
        if name is None:
            return "Neither topic name nor id were specified."
        return "Duplicate topic name." if times > 1 else None
    if name is not None:
        return "You may not specify both topic name and topic id."
    return "Duplicate topic id." if times > 1 else None


def _disabled(asked: list[DeleteTopicState], version: int) -> DeleteTopicsResponse:
    error = (
        ErrorCode.TOPIC_DELETION_DISABLED
        if version >= _FIRST_WITH_DELETION_DISABLED
        else ErrorCode.INVALID_REQUEST
    )
    text = ErrorCode.TOPIC_DELETION_DISABLED.message
    return _unanswered(asked, Refusal(error, text))


def _unanswered(asked: list[DeleteTopicState], why: Refusal) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(
                name=one.name,
                topic_id=one.topic_id,
                error_code=why.error_code,
                error_message=why.message,
            )
            for one in asked
        ]
    )


def _result(answer: TopicAnswer) -> DeletableTopicResult:
    is_error = answer.error is not ErrorCode.NONE
    return DeletableTopicResult(
        name=answer.name,
        topic_id=answer.topic_id,
        error_code=answer.error,
        error_message=answer.message or (answer.error.message if is_error else None),
    )
