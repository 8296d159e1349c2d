"""`configs --describe`: configs with their sources, quotas and credentials, as Kafka prints them, or as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from headrace.cli.configs.config_entities import (
    BROKERS,
    CLIENT_METRICS,
    DEFAULT,
    GROUPS,
    TOPICS,
    USERS,
    Entities,
    resource_type_of,
)
from headrace.cli.configs.quota_changes import quota_filter
from headrace.cli.shell.command_line import nearest, tell
from headrace.cli.shell.output import print_json, wants_json
from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import (
    ConfigEntry,
    ConfigSource,
    ResourceType,
    describe_configs,
    list_config_resources,
)
from headrace.client.admin.groups import list_groups
from headrace.client.admin.quotas import QuotaEntity, describe_quotas, describe_scram
from headrace.client.admin.topics import list_topics
from headrace.client.exchange import VersionNotOffered
from headrace.wire.refusal import Refusal, Refused

_DYNAMIC = {
    ResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceType.BROKER: ConfigSource.DYNAMIC_BROKER_CONFIG,
    ResourceType.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}
_QUOTA_WORDS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}


def describe(admin: Admin, options: argparse.Namespace, entities: Entities) -> None:
    """Print the configs of the entities that the options name."""
    resource_type = resource_type_of(entities.kind)
    if resource_type is None:
        _describe_quotas(admin, options, entities)
    else:
        _describe_resources(admin, options, entities, resource_type)


def _existing(admin: Admin, kind: str) -> list[str]:
    if kind == TOPICS:
        return [topic.name for topic in list_topics(admin)]
    if kind == GROUPS:
        names = {group.group_id for group in list_groups(admin)}
        return sorted(names | set(_resources(admin, ResourceType.GROUP)))
    if kind == CLIENT_METRICS:
        return _resources(admin, ResourceType.CLIENT_METRICS)
    brokers = [str(broker) for broker in sorted(admin.cluster().nodes)]
    return [*brokers, DEFAULT] if kind == BROKERS else brokers


def _resources(admin: Admin, resource_type: ResourceType) -> list[str]:
    try:
        return list_config_resources(admin, resource_type)
    except VersionNotOffered:
        return []


def _describe_resources(
    admin: Admin, options: argparse.Namespace, entities: Entities, resource_type: ResourceType
) -> None:
    singular = entities.kind[:-1]
    names = _names(admin, options, entities)
    described = describe_configs(admin, resource_type, names, synonyms=True)
    as_json = []
    for name in names:
        entries = described[name]
        if isinstance(entries, Refusal):
            raise Refused.of(entries)
        shown = _shown(entries, resource_type, name, everything=options.all)
        if wants_json(options):
            as_json.append(_resource_json(singular, name, shown))
            continue
        if name == DEFAULT:
            print(f"Default configs for {entities.kind} in the cluster are:")
        else:
            print(f"{'All' if options.all else 'Dynamic'} configs for {singular} {name} are:")
        for entry in shown:
            print(entry_line(entry))
    if wants_json(options):
        print_json(as_json)


def _names(admin: Admin, options: argparse.Namespace, entities: Entities) -> list[str]:
    if entities.name is None:
        return _existing(admin, entities.kind)
    if not options.all and entities.name != DEFAULT:
        existing = _existing(admin, entities.kind)
        if entities.name not in existing:
            kind = entities.kind[:-1]
            print(f"The {kind} '{entities.name}' doesn't exist and doesn't have dynamic config.")
            hint = nearest(entities.name, existing)
            if hint:
                tell(f"  try: {hint}")
            return []
    return [entities.name]


def _shown(
    entries: Sequence[ConfigEntry], resource_type: ResourceType, name: str, *, everything: bool
) -> list[ConfigEntry]:
    source = _DYNAMIC[resource_type]
    if resource_type is ResourceType.BROKER and name == DEFAULT:
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return sorted(
        (entry for entry in entries if everything or entry.source is source),
        key=lambda entry: entry.name,
    )


def entry_line(entry: ConfigEntry) -> str:
    """A config with its synonyms, in the order in which they count."""
    synonyms = ", ".join(
        f"{each.source.name}:{each.name}={_text(each.value)}" for each in entry.synonyms
    )
    sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value


def _resource_json(kind: str, name: str, entries: Sequence[ConfigEntry]) -> dict[str, Any]:
    return {
        "type": kind,
        "name": name,
        "configs": [
            {
                "name": entry.name,
                "value": entry.value,
                "source": entry.source.name,
                "sensitive": entry.is_sensitive,
                "readOnly": entry.is_read_only,
                "synonyms": [
                    {"source": each.source.name, "name": each.name, "value": each.value}
                    for each in entry.synonyms
                ],
            }
            for entry in entries
        ],
    }


def _describe_quotas(admin: Admin, options: argparse.Namespace, entities: Entities) -> None:
    quotas = describe_quotas(admin, quota_filter(entities))
    credentials = {}
    if entities.types == [USERS] and DEFAULT not in entities.names:
        credentials = describe_scram(admin, entities.names)
    if wants_json(options):
        print_json(
            {
                "quotas": [
                    {"entity": dict(entity.parts), "values": found} for entity, found in quotas
                ],
                "credentials": {
                    user: str(found)
                    if isinstance(found, Refusal)
                    else {mechanism.title: iterations for mechanism, iterations in found.items()}
                    for user, found in credentials.items()
                },
            }
        )
        return
    for entity, values in quotas:
        shown = ", ".join(f"{name}={value}" for name, value in values.items())
        print(f"Quota configs for {entity_text(entity)} are {shown}")
    for user, found in credentials.items():
        if isinstance(found, Refusal):
            print(f"Error retrieving SCRAM credential configs for user-principal '{user}': {found}")
            continue
        shown = ", ".join(
            f"{mechanism.title}=iterations={iterations}" for mechanism, iterations in found.items()
        )
        print(f"SCRAM credential configs for user-principal '{user}' are {shown}")


def entity_text(entity: QuotaEntity) -> str:
    """Whom a quota is for, in words."""
    return ", ".join(
        f"{word} '{entity.parts[kind]}'" if entity.parts[kind] else f"the default {word}"
        for kind, word in _QUOTA_WORDS.items()
        if kind in entity.parts
    )
