"""Configs of topics, brokers and all brokers of version 3: reading, setting, resetting, altering several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import (
    ConfigEntry,
    ConfigSource,
    ResourceType,
    alter_configs,
    describe_configs,
)
from headrace.rest import errors
from headrace.rest.admin.topic_view import all_topics
from headrace.rest.http.answers import answer, nothing
from headrace.rest.http.bodies import whole_number
from headrace.rest.http.v3_routes import V3Routes
from headrace.rest.links import Links
from headrace.rest.media_types import V3_BODIES
from headrace.rest.producing import record_answers
from headrace.wire.refusal import Refused

Json = Any

_NULL_PAYLOAD: Final = "Null input provided. Data is required."
_ALL_BROKERS: Final = ""  # the name of the resource with the default of all brokers


class Operation(Enum):
    """What is done with a config."""

    SET = "SET"
    DELETE = "DELETE"


class ValueForm(msgspec.Struct, forbid_unknown_fields=True):
    """A new value."""

    value: str | None = None


class AlterForm(msgspec.Struct, forbid_unknown_fields=True):
    """A change of one config."""

    name: str
    value: str | None = None
    operation: Operation | None = None


class AlterBatchForm(msgspec.Struct, forbid_unknown_fields=True):
    """Changes of configs of one resource; all of them are made, or none."""

    data: list[AlterForm]
    validate_only: bool | None = None


class TopicAlterForm(msgspec.Struct, forbid_unknown_fields=True):
    """Changes of configs of a topic."""

    topic_name: str
    configs: list[AlterForm]


class TopicsAlterForm(msgspec.Struct, forbid_unknown_fields=True):
    """Changes of configs of several topics."""

    data: list[TopicAlterForm]
    validate_only: bool | None = None


class _Resource:
    """Something that has configs, where its configs are found, and how they are called."""

    def __init__(
        self,
        kind: ResourceType,
        name: str,
        json_kind: str,
        place: tuple[str | int, ...],
        crn: Callable[[str], tuple[tuple[str, str | int | None], ...]],
        attributes: Mapping[str, Json],
    ) -> None:
        self.kind = kind
        self.name = name
        self.json_kind = json_kind
        self.place = place
        self.crn = crn
        self.attributes = attributes

    def config(self, links: Links, entry: ConfigEntry) -> Json:
        """A config as it is shown."""
        return links.resource(
            self.json_kind,
            (*self.place, entry.name),
            self.crn(entry.name),
            **self.attributes,
            name=entry.name,
            value=entry.value,
            is_read_only=entry.is_read_only,
            is_sensitive=entry.is_sensitive,
            source=entry.source.name,
            synonyms=[
                {"name": each.name, "value": each.value, "source": each.source.name}
                for each in entry.synonyms
            ],
            is_default=entry.source is ConfigSource.DEFAULT_CONFIG,
        )


def _topic(name: str) -> _Resource:
    return _Resource(
        ResourceType.TOPIC,
        name,
        "KafkaTopicConfig",
        ("topics", name, "configs"),
        lambda config: (("topic", name), ("config", config)),
        {"topic_name": name},
    )


def _broker(number: int) -> _Resource:
    return _Resource(
        ResourceType.BROKER,
        str(number),
        "KafkaBrokerConfig",
        ("brokers", number, "configs"),
        lambda config: (("broker", number), ("config", config)),
        {"broker_id": number},
    )


_CLUSTER: Final = _Resource(
    ResourceType.BROKER,
    _ALL_BROKERS,
    "KafkaClusterConfig",
    ("broker-configs",),
    lambda config: (("broker-config", config),),
    {"config_type": "BROKER"},
)


class V3Configs(V3Routes):
    """The routes."""

    @staticmethod
    def _resource(request: Request) -> _Resource:
        if "topic" in request.path_params:
            return _topic(request.path_params["topic"])
        if "broker" in request.path_params:
            return _broker(whole_number(request, "broker"))
        return _CLUSTER

    async def list_configs(self, request: Request) -> Response:
        """GET …/configs, GET …/broker-configs."""
        resource = self._resource(request)
        found = await self.ask(request, lambda admin: _described(admin, resource))
        links = self.links(request)
        data = [resource.config(links, each) for each in _sorted(found)]
        return answer(links.collection(f"{resource.json_kind}List", resource.place, data))

    async def configs_of_all_topics(self, request: Request) -> Response:
        """GET …/topics/-/configs."""

        def find(admin: Admin) -> list[tuple[_Resource, Sequence[ConfigEntry]]]:
            names = [each.name for each in all_topics(admin)]
            found = describe_configs(admin, ResourceType.TOPIC, names, synonyms=True)
            return [
                (_topic(name), entries)
                for name, entries in sorted(found.items())
                if isinstance(entries, list)  # a topic that was deleted meanwhile has none
            ]

        return await self._of_all(request, "KafkaTopicConfigList", "topics", find)

    async def configs_of_all_brokers(self, request: Request) -> Response:
        """GET …/brokers/-/configs."""

        def find(admin: Admin) -> list[tuple[_Resource, Sequence[ConfigEntry]]]:
            admin.metadata([])
            resources = [_broker(each) for each in sorted(admin.cluster().nodes)]
            return [(each, _described(admin, each)) for each in resources]

        return await self._of_all(request, "KafkaBrokerConfigList", "brokers", find)

    async def _of_all(
        self,
        request: Request,
        kind: str,
        where: str,
        find: Callable[[Admin], list[tuple[_Resource, Sequence[ConfigEntry]]]],
    ) -> Response:
        found = await self.ask(request, find)
        links = self.links(request)
        data = [
            resource.config(links, each) for resource, entries in found for each in _sorted(entries)
        ]
        return answer(links.collection(kind, (where, "-", "configs"), data))

    async def get_config(self, request: Request) -> Response:
        """GET …/configs/{name}."""
        resource, name = self._resource(request), request.path_params["name"]
        found = await self.ask(request, lambda admin: _described(admin, resource))
        entry = next((each for each in found if each.name == name), None)
        if entry is None:
            raise errors.not_found()
        return answer(resource.config(self.links(request), entry))

    async def set_config(self, request: Request) -> Response:
        """PUT …/configs/{name}."""
        form = await self.bodies.required_form(request, ValueForm, V3_BODIES, _NULL_PAYLOAD)
        return await self._alter(
            request, [AlterForm(request.path_params["name"], form.value)], is_trial=False
        )

    async def reset_config(self, request: Request) -> Response:
        """DELETE …/configs/{name}."""
        change = AlterForm(request.path_params["name"], operation=Operation.DELETE)
        return await self._alter(request, [change], is_trial=False)

    async def alter_configs(self, request: Request) -> Response:
        """POST …/configs:alter, POST …/broker-configs:alter."""
        form = await self.bodies.required_form(request, AlterBatchForm, V3_BODIES, _NULL_PAYLOAD)
        return await self._alter(request, form.data, is_trial=bool(form.validate_only))

    async def _alter(
        self, request: Request, changes: Sequence[AlterForm], *, is_trial: bool
    ) -> Response:
        resource = self._resource(request)

        def alter(admin: Admin) -> None:
            # The default of all brokers has only the configs that were set: any may be added.
            if resource is not _CLUSTER:
                self._require_known(admin, resource, changes)
            _altered(admin, resource, changes, is_trial=is_trial)

        await self.ask(request, alter)
        return nothing()

    async def alter_topics(self, request: Request) -> Response:
        """POST …/topics/-/configs:alter."""
        form = await self.bodies.required_form(request, TopicsAlterForm, V3_BODIES, _NULL_PAYLOAD)
        is_trial = bool(form.validate_only)

        def alter(admin: Admin) -> list[Json]:
            resources = [(_topic(each.topic_name), each.configs) for each in form.data]
            for resource, changes in resources:
                self._require_known(admin, resource, changes)
            failures = []
            for resource, changes in resources:
                try:
                    _altered(admin, resource, changes, is_trial=is_trial)
                except Refused as refused:
                    error = errors.of_kafka(refused.error_code, str(refused))
                    told = record_answers.failure(error)
                    failures.append(
                        {
                            "topic_name": resource.name,
                            "error_code": told.error_code,
                            "message": told.message,
                        }
                    )
            return failures

        failures = await self.ask(request, alter)
        return answer({"failures": failures}, status=207) if failures else nothing()

    def _require_known(
        self, admin: Admin, resource: _Resource, changes: Sequence[AlterForm]
    ) -> None:
        known = {each.name for each in _described(admin, resource)}
        for change in changes:
            if change.name not in known:
                raise errors.not_found(
                    f"Config {change.name} cannot be found for {resource.kind.name} {resource.name} "
                    f"in cluster {self.cluster_id}."
                )


def _described(admin: Admin, resource: _Resource) -> list[ConfigEntry]:
    if resource.kind is ResourceType.BROKER and resource.name:
        admin.metadata([])
        if int(resource.name) not in admin.cluster().nodes:
            raise errors.not_found(f"Broker {resource.name} cannot be found.")
    found = describe_configs(admin, resource.kind, [resource.name], synonyms=True)
    entries = found[resource.name]
    if not isinstance(entries, list):
        raise Refused.of(entries)
    return entries


def _sorted(entries: Sequence[ConfigEntry]) -> list[ConfigEntry]:
    return sorted(entries, key=lambda each: each.name)


def _altered(
    admin: Admin, resource: _Resource, changes: Sequence[AlterForm], *, is_trial: bool
) -> None:
    alter_configs(
        admin,
        resource.kind,
        resource.name,
        delete=[each.name for each in changes if each.operation is Operation.DELETE],
        add={each.name: each.value for each in changes if each.operation is not Operation.DELETE},
        validate_only=is_trial,
    )
