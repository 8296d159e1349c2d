"""Changes of configs on their way to the controller: what AlterConfigs and IncrementalAlterConfigs have in common.

Invalid changes are refused here, with Kafka's error codes and messages. The others go to the controller in one request.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.controller_call import ask_controller
from headrace.controller.configs import AlterConfigs, ConfigEdit, ConfigWish
from headrace.controller.core import Controller
from headrace.controller.topics import name_fault
from headrace.controller.values import ConfigKind
from headrace.settings.alter import AlterOutcome, repeated
from headrace.settings.resource import Resource, ResourceType
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

_KINDS = frozenset(ConfigKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChangeRequest:
    """The changes of one resource in a request, and what is wrong with them by the definitions of settings."""

    resource: Resource
    outcome: AlterOutcome
    edits: tuple[ConfigEdit, ...]
    replace_all: bool = False


class ConfigResult(NamedTuple):
    """The outcome for one resource."""

    resource: Resource
    error_code: ErrorCode = ErrorCode.NONE
    message: str | None = None


async def change_configs(
    changes: Sequence[ConfigChangeRequest],
    cluster: ClusterView,
    controller: Controller,
    *,
    validate_only: bool,
) -> list[ConfigResult]:
    """Make the changes that can be made; one result per resource, in the order of the request."""
    twice = repeated(change.resource for change in changes)
    results: dict[Resource, ConfigResult] = {}
    wishes: list[ConfigWish] = []
    for change in changes:
        resource = change.resource
        refusal = twice.get(resource) or _refuse_topic(resource, cluster) or change.outcome.refusal
        if refusal is not None:
            results[resource] = ConfigResult(resource, refusal.error_code, refusal.message)
            continue
        results[resource] = ConfigResult(resource)
        if resource.type in _KINDS:  # levels of loggers are not stored
            wishes.append(
                ConfigWish(
                    kind=ConfigKind(resource.type),
                    name=resource.name,
                    edits=change.edits,
                    replace_all=change.replace_all,
                )
            )
    if wishes:
        results |= await _ask(wishes, controller, validate_only=validate_only)
    return list(results.values())


async def _ask(
    wishes: list[ConfigWish], controller: Controller, *, validate_only: bool
) -> dict[Resource, ConfigResult]:
    request = AlterConfigs(wishes=tuple(wishes), validate_only=validate_only)
    answers = await ask_controller(controller.ask(request))
    if isinstance(answers, Refusal):
        resources = [Resource(wish.kind, wish.name) for wish in wishes]
        return {
            resource: ConfigResult(resource, answers.error_code, answers.message)
            for resource in resources
        }
    return {
        resource: ConfigResult(resource, answer.error, answer.message)
        for answer in answers
        for resource in (Resource(answer.kind, answer.name),)
    }


def _refuse_topic(resource: Resource, cluster: ClusterView) -> Refusal | None:
    """Refuse an unknown topic. (The settings refuse an empty name.)"""
    name = resource.name
    if resource.type != ResourceType.TOPIC or not name or name in cluster.state.topics:
        return None
    fault = name_fault(name)
    if fault is not None:
        return Refusal(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    return Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
