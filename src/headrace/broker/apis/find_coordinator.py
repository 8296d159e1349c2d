"""FindCoordinator (10), versions 0-6: which broker answers for a group or a transactional id.

v1 key type, error message · v3 flexible · v4 several keys, each with its own error (KIP-699) · v5, v6 as v4, for newer error
codes and share groups. The first request for a group or a transactional id brings the coordinator's topic into being.
Errors, per key: COORDINATOR_NOT_AVAILABLE while that topic or its leader is missing, INVALID_REQUEST for a key type that
is not offered.
Left out: coordinators of share groups' state (type 2).
"""

from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.reachable_brokers import NO_BROKER, reachable_brokers
from headrace.broker.cluster.topic_creation import TopicCreation
from headrace.broker.coordinators.coordinator_table import (
    CoordinatorEntry,
    CoordinatorTable,
    KeyType,
)
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.values import Endpoint
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

_FIRST_WITH_KEYS: Final = 4
_NOT_OFFERED: Final[dict[int, str]] = {
    KeyType.SHARE: "Share groups are not offered by this broker.",
}


class _Found(NamedTuple):
    """What is known about the coordinator of one key."""

    error: ErrorCode = ErrorCode.NONE
    message: str = ""
    broker_id: int = NO_BROKER
    host: str = ""
    port: int = -1


_NOT_AVAILABLE: Final = _Found(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE.message
)


def handle(
    request: FindCoordinatorRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    coordinators: CoordinatorTable,
    topic_creation: TopicCreation,
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    keys = request.coordinator_keys if context.version >= _FIRST_WITH_KEYS else (request.key,)
    coordinator = coordinators.for_key_type(request.key_type)
    if coordinator is None:
        text = _NOT_OFFERED.get(request.key_type, f"Unknown key type {request.key_type}.")
        refused = _Found(ErrorCode.INVALID_REQUEST, text)
        return _response(context.version, [(key, refused) for key in keys])

    def answer() -> FindCoordinatorResponse:
        reachable = reachable_brokers(cluster, context.connection)
        return _response(
            context.version, [(key, _find(key, cluster, coordinator, reachable)) for key in keys]
        )

    async def create_and_answer() -> FindCoordinatorResponse:
        await topic_creation.create((coordinator.topic,))
        return answer()

    if keys and coordinator.topic not in cluster.state.topics:
        return create_and_answer()
    return answer()


def _find(
    key: str, cluster: ClusterView, coordinator: CoordinatorEntry, reachable: dict[int, Endpoint]
) -> _Found:
    index = coordinator.runtime.partition_for(key)
    partition = cluster.state.partition(coordinator.topic, index)
    if partition is None or partition.leader not in reachable:
        return _NOT_AVAILABLE
    endpoint = reachable[partition.leader]
    return _Found(broker_id=partition.leader, host=endpoint.host, port=endpoint.port)


def _response(version: int, found: list[tuple[str, _Found]]) -> FindCoordinatorResponse:
    if version >= _FIRST_WITH_KEYS:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=one.broker_id,
                    host=one.host,
                    port=one.port,
                    error_code=one.error,
                    error_message=one.message,
                )
                for key, one in found
            ]
        )
    _, one = found[0]
    return FindCoordinatorResponse(
        error_code=one.error,
        # Kafka fills the message here even when there is nothing to say.
        error_message=one.message or ErrorCode.NONE.name,
        node_id=one.broker_id,
        host=one.host,
        port=one.port,
    )
