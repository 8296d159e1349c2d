"""DescribeConfigs (32), versions 1-4: configs of topics, brokers, groups and client-metrics subscriptions.

v1 sources and synonyms · v3 types and documentation · v4 flexible. No keys means all of them.
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST; one resource of an unknown type
spoils the whole request, as with Kafka.
Loggers are those of this process.
"""

from collections.abc import Mapping

from headrace.broker import loggers
from headrace.broker.cluster_view import ClusterView
from headrace.broker.live_settings import LiveSettings
from headrace.broker.request import RequestContext
from headrace.broker.settings.describe import ConfigEntry, Wanted, describe
from headrace.broker.settings.resolution import ConfigLayers
from headrace.broker.settings.resource import Refusal, Resource, ResourceType
from headrace.controller.topics import name_fault
from headrace.controller.values import ConfigKind
from headrace.wire.error_code import ErrorCode
from headrace.wire.error_text import TEXTS
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_TYPES = frozenset(ResourceType)
_KINDS = frozenset(ConfigKind)


def handle(
    request: DescribeConfigsRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    live_settings: LiveSettings,
) -> DescribeConfigsResponse:
    if any(asked.resource_type not in _TYPES for asked in request.resources):
        malformed = Refusal(ErrorCode.INVALID_REQUEST, TEXTS[ErrorCode.INVALID_REQUEST])
        return DescribeConfigsResponse(
            results=[_result(asked, malformed) for asked in request.resources]
        )
    layers = live_settings.current.layers
    return DescribeConfigsResponse(
        results=[
            _result(
                asked,
                _described(
                    asked,
                    Wanted(
                        asked.configuration_keys,
                        synonyms=request.include_synonyms,
                        documentation=request.include_documentation,
                    ),
                    cluster,
                    layers,
                ),
            )
            for asked in request.resources
        ]
    )


def _described(
    asked: DescribeConfigsResource, wanted: Wanted, cluster: ClusterView, layers: ConfigLayers
) -> list[ConfigEntry] | Refusal:
    kind, name = asked.resource_type, asked.resource_name
    if kind == ResourceType.TOPIC and name not in cluster.state.topics:
        fault = name_fault(name)
        if fault is not None:
            return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
        return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    own: Mapping[str, str] = {}
    if kind in _KINDS:
        own = cluster.state.config(ConfigKind(kind), name)
    elif kind == ResourceType.BROKER_LOGGER:
        own = loggers.levels()
    return describe(Resource(kind, name), own, layers, wanted)


def _result(
    asked: DescribeConfigsResource, described: list[ConfigEntry] | Refusal
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=asked.resource_type, resource_name=asked.resource_name
    )
    if isinstance(described, Refusal):
        result.error_code = described.error_code
        result.error_message = described.message
    else:
        result.configs = list(map(_config, described))
    return result


def _config(entry: ConfigEntry) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in entry.synonyms
        ],
        config_type=entry.type,
        documentation=entry.documentation,
    )
