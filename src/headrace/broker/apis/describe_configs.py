"""DescribeConfigs (32), versions 1-4: configs of topics, brokers, groups and client-metrics subscriptions.

v1 sources and synonyms · v3 types and documentation · v4 flexible. No keys means all of them.
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_REQUEST; one resource of an unknown type
spoils the whole request, as with Kafka. INVALID_REQUEST, too, for what would make the answer larger than
`array_answer.MAX_ITEM_BYTES`.
Loggers are those of this process.
"""

from collections.abc import Mapping

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.array_answer import TOO_LARGE, ArrayAnswer, EncodedAnswer
from headrace.broker.requests.long_work import LongWork
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry import loggers
from headrace.controller.topics import name_fault
from headrace.controller.values import ConfigKind
from headrace.settings.describe import ConfigEntry, ConfigQuery, describe
from headrace.settings.live_settings import LiveSettings
from headrace.settings.resolution import ConfigLayers
from headrace.settings.resource import Resource, ResourceType
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from headrace.wire.refusal import Refusal

_TYPES = frozenset(ResourceType)
_KINDS = frozenset(ConfigKind)
_MALFORMED = Refusal(ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.message)
_TOO_LARGE = Refusal(ErrorCode.INVALID_REQUEST, TOO_LARGE)


async def handle(
    request: DescribeConfigsRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    live_settings: LiveSettings,
    long_work: LongWork,
) -> EncodedAnswer:
    answer = ArrayAnswer(
        DescribeConfigsResponse(), DescribeConfigsResult, context.version, long_work.slices()
    )
    is_malformed = any(asked.resource_type not in _TYPES for asked in request.resources)
    for asked in request.resources:
        if is_malformed:
            described: list[ConfigEntry] | Refusal = _MALFORMED
        elif answer.is_full:
            described = _TOO_LARGE
        else:
            described = _described(
                asked, _query(request, asked), cluster, live_settings.current.layers
            )
        await answer.add(_result(asked, described))
    return answer.encoded()


def _query(request: DescribeConfigsRequest, asked: DescribeConfigsResource) -> ConfigQuery:
    return ConfigQuery(
        frozenset(asked.configuration_keys or ()),
        synonyms=request.include_synonyms,
        documentation=request.include_documentation,
    )


def _described(
    asked: DescribeConfigsResource, wanted: ConfigQuery, cluster: ClusterView, layers: ConfigLayers
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
