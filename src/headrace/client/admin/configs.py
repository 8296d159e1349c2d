"""Configs of topics, brokers, groups and the rest: as they are, with where each value comes from, and changing them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from headrace.client.admin.admin import Admin
from headrace.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.wire.messages.list_config_resources import ListConfigResourcesRequest
from headrace.wire.refusal import Refusal, refusal_of, require


class ResourceType(IntEnum):
    """What has configs."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    """Where a value comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


_SET = 0
_DELETE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Synonym:
    """Another place that says what a config's value is, in the order in which they count."""

    name: str
    value: str | None
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    """One config of a resource."""

    name: str
    value: str | None
    source: ConfigSource
    is_sensitive: bool
    is_read_only: bool
    synonyms: Sequence[Synonym]


def describe_configs(
    admin: Admin, resource_type: ResourceType, names: Iterable[str], *, synonyms: bool = False
) -> dict[str, list[ConfigEntry] | Refusal]:
    """The configs of resources, by name. A broker is asked for its own; `""` is the default of all brokers."""
    described: dict[str, list[ConfigEntry] | Refusal] = {}
    shared = []
    for name in names:
        if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name:
            described |= _describe(admin, resource_type, [name], synonyms, broker_id=int(name))
        else:
            shared.append(name)
    if shared:
        described |= _describe(admin, resource_type, shared, synonyms, broker_id=None)
    return described


def _describe(
    admin: Admin,
    resource_type: ResourceType,
    names: list[str],
    synonyms: bool,  # noqa: FBT001 - named by the only caller
    broker_id: int | None,
) -> dict[str, list[ConfigEntry] | Refusal]:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(
                resource_type=resource_type, resource_name=name, configuration_keys=None
            )
            for name in names
        ],
        include_synonyms=synonyms,
    )
    answer = admin.ask_any(request) if broker_id is None else admin.ask_broker(broker_id, request)
    return {
        result.resource_name: refusal_of(result.error_code, result.error_message)
        or [
            ConfigEntry(
                name=each.name,
                value=each.value,
                source=_source(each.config_source),
                is_sensitive=each.is_sensitive,
                is_read_only=each.read_only,
                synonyms=[
                    Synonym(name=other.name, value=other.value, source=_source(other.source))
                    for other in each.synonyms
                ],
            )
            for each in result.configs
        ]
        for result in answer.results
    }


def _source(number: int) -> ConfigSource:
    try:
        return ConfigSource(number)
    except ValueError:
        return ConfigSource.UNKNOWN


def alter_configs(
    admin: Admin,
    resource_type: ResourceType,
    name: str,
    *,
    delete: Iterable[str] = (),
    add: Mapping[str, str | None] | None = None,
    validate_only: bool = False,
) -> None:
    """Delete, then set; or only ask whether that would be accepted. Raises Refused."""
    changes = [AlterableConfig(name=key, config_operation=_DELETE, value=None) for key in delete]
    changes += [
        AlterableConfig(name=key, config_operation=_SET, value=value)
        for key, value in (add or {}).items()
    ]
    request = IncrementalAlterConfigsRequest(
        resources=[
            AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=changes)
        ],
        validate_only=validate_only,
    )
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and name:
        answer = admin.ask_broker(int(name), request)
    else:
        answer = admin.ask_controller(
            request, errors_of=lambda found: [each.error_code for each in found.responses]
        )
    for result in answer.responses:
        require(result.error_code, result.error_message)


def list_config_resources(admin: Admin, resource_type: ResourceType) -> list[str]:
    """Names of the resources of this type that have configs."""
    answer = admin.ask_any(ListConfigResourcesRequest(resource_types=[resource_type]))
    require(answer.error_code)
    return sorted(
        each.resource_name
        for each in answer.config_resources
        if each.resource_type == resource_type
    )
