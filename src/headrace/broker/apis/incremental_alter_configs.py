"""IncrementalAlterConfigs (44), versions 0-1: single configs are set, deleted, appended to, subtracted from (KIP-339).

v1 flexible.
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, INVALID_REQUEST, NOT_CONTROLLER.
The levels of loggers are those of this process, and are not stored.
"""

from collections.abc import Collection, Iterable, Mapping

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.config_changes import ConfigChangeRequest, change_configs
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.telemetry import loggers
from headrace.controller.configs import ConfigEdit, ConfigOperation
from headrace.controller.core import Controller
from headrace.controller.values import ConfigKind
from headrace.settings.alter import AlterOutcome, validate_incremental
from headrace.settings.alteration import Alteration, AlterOp
from headrace.settings.live_settings import LiveSettings
from headrace.settings.resource import Resource, ResourceType
from headrace.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_KINDS = frozenset(ConfigKind)


async def handle(
    request: IncrementalAlterConfigsRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    controller: Controller,
    live_settings: LiveSettings,
) -> IncrementalAlterConfigsResponse:
    layers = live_settings.current.layers

    def validate(asked: AlterConfigsResource) -> AlterOutcome:
        kind, name = asked.resource_type, asked.resource_name
        alterations = [
            Alteration(config.name, config.config_operation, config.value)
            for config in asked.configs
        ]
        current: Mapping[str, str] = {}
        if kind in _KINDS:
            current = cluster.state.config(ConfigKind(kind), name)
        elif kind == ResourceType.BROKER_LOGGER:
            current = loggers.levels()
        return validate_incremental(Resource(kind, name), alterations, current, layers)

    def wanted(asked: AlterConfigsResource) -> ConfigChangeRequest:
        outcome = validate(asked)
        edits: tuple[ConfigEdit, ...] = ()
        if outcome.refusal is None:
            edits = tuple(
                ConfigEdit(
                    key=config.name,
                    operation=ConfigOperation(config.config_operation),
                    value=config.value,
                )
                for config in asked.configs
            )
        resource = Resource(asked.resource_type, asked.resource_name)
        return ConfigChangeRequest(resource=resource, outcome=outcome, edits=edits)

    results = await change_configs(
        list(map(wanted, request.resources)),
        cluster,
        controller,
        validate_only=request.validate_only,
    )
    if not request.validate_only:
        _set_levels(request.resources, {each.resource for each in results if not each.error_code})
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=error,
                error_message=message,
                resource_type=resource.type,
                resource_name=resource.name,
            )
            for resource, error, message in results
        ]
    )


def _set_levels(asked: Iterable[AlterConfigsResource], accepted: Collection[Resource]) -> None:
    for each in asked:
        is_accepted = Resource(each.resource_type, each.resource_name) in accepted
        if is_accepted and each.resource_type == ResourceType.BROKER_LOGGER:
            for config in each.configs:
                is_set = config.config_operation == AlterOp.SET
                loggers.set_level(config.name, config.value if is_set else None)
