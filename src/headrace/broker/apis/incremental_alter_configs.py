"""IncrementalAlterConfigs (44), versions 0-1: single configs are set, deleted, appended to, subtracted from (KIP-339).

v1 flexible.
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, INVALID_REQUEST, NOT_CONTROLLER.
Left out: loggers; none exists here.
"""

from headrace.broker.cluster_view import ClusterView
from headrace.broker.config_changes import WantedChange, change_configs
from headrace.broker.live_settings import LiveSettings
from headrace.broker.request import RequestContext
from headrace.broker.settings.alter import Alteration, AlterOutcome, validate_incremental
from headrace.broker.settings.resource import Resource
from headrace.controller.configs import ConfigEdit, ConfigOperation
from headrace.controller.core import Controller
from headrace.controller.values import ConfigKind
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
        current = cluster.state.config(ConfigKind(kind), name) if kind in _KINDS else {}
        return validate_incremental(Resource(kind, name), alterations, current, layers)

    def wanted(asked: AlterConfigsResource) -> WantedChange:
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
        return WantedChange(resource=resource, outcome=outcome, edits=edits)

    results = await change_configs(
        list(map(wanted, request.resources)),
        cluster,
        controller,
        validate_only=request.validate_only,
    )
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
