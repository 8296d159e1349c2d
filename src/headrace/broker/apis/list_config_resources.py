"""ListConfigResources (74), versions 0-1: what has configs (KIP-1000, KIP-1142).

v0 only the client-metrics subscriptions · v1 any types of resource; none means all of them.
Errors: UNSUPPORTED_VERSION for a type that has no such list.
"""

from collections.abc import Iterator
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.cluster_state import ClusterState
from headrace.controller.values import ConfigKind
from headrace.settings.resource import ResourceType
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

_FIRST_WITH_TYPES: Final = 1
_ALL: Final = tuple(reversed(ResourceType))


def handle(
    request: ListConfigResourcesRequest, context: RequestContext, *, cluster: ClusterView
) -> ListConfigResourcesResponse:
    wanted = set(request.resource_types or _ALL)
    if context.version < _FIRST_WITH_TYPES:
        wanted = {ResourceType.CLIENT_METRICS}
    if not wanted <= set(_ALL):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in _ALL
            if kind in wanted
            for name in _names(kind, cluster.state)
        ]
    )


def _names(kind: ResourceType, state: ClusterState) -> Iterator[str]:
    match kind:
        case ResourceType.TOPIC:
            yield from state.topics
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            yield from map(str, sorted(state.brokers))
        case ResourceType.GROUP | ResourceType.CLIENT_METRICS:
            for owner, name in state.configs:
                if owner is ConfigKind(kind):
                    yield name
