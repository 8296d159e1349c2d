"""AlterConfigs (33), versions 0-2: the configs of a resource are replaced as a whole.

v2 flexible. Superseded by IncrementalAlterConfigs, and still sent by librdkafka, kafka-python and older Java clients.
Errors, per resource: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION, INVALID_CONFIG, INVALID_REQUEST, NOT_CONTROLLER.
Left out: loggers.
"""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.config_changes import ConfigChangeRequest, change_configs
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.configs import ConfigEdit
from headrace.controller.core import Controller
from headrace.settings.alter import AlterOutcome, validate_replacement
from headrace.settings.live_settings import LiveSettings
from headrace.settings.resource import Resource
from headrace.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(
    request: AlterConfigsRequest,
    context: RequestContext,
    *,
    cluster: ClusterView,
    controller: Controller,
    live_settings: LiveSettings,
) -> AlterConfigsResponse:
    layers = live_settings.current.layers

    def validate(asked: AlterConfigsResource) -> AlterOutcome:
        resource = Resource(asked.resource_type, asked.resource_name)
        configs = [(config.name, config.value) for config in asked.configs]
        return validate_replacement(resource, configs, layers)

    results = await change_configs(
        [
            ConfigChangeRequest(
                resource=Resource(asked.resource_type, asked.resource_name),
                outcome=validate(asked),
                edits=tuple(
                    ConfigEdit(key=config.name, value=config.value) for config in asked.configs
                ),
                replace_all=True,
            )
            for asked in request.resources
        ],
        cluster,
        controller,
        validate_only=request.validate_only,
    )
    return AlterConfigsResponse(
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
