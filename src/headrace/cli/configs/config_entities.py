"""Whose configs `configs` is about, and what shall be changed: from options to values, with Kafka's checks."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import Failure, UsageError
from headrace.cli.shell.connecting import read_properties

if TYPE_CHECKING:
    from headrace.client.admin.configs import ResourceType

TOPICS, BROKERS, BROKER_LOGGERS = "topics", "brokers", "broker-loggers"
USERS, CLIENTS, IPS = "users", "clients", "ips"
CLIENT_METRICS, GROUPS = "client-metrics", "groups"
TYPES = (BROKER_LOGGERS, TOPICS, CLIENTS, USERS, BROKERS, IPS, CLIENT_METRICS, GROUPS)
WITH_DEFAULT = (USERS, CLIENTS, BROKERS, IPS)
DEFAULT = ""  # the name of an entity type's default

# In the order in which Kafka's tool looks at them.
FLAGS = {
    "topic": TOPICS,
    "client": CLIENTS,
    "user": USERS,
    "broker": BROKERS,
    "broker_logger": BROKER_LOGGERS,
    "ip": IPS,
    "client_metrics": CLIENT_METRICS,
    "group": GROUPS,
}
DEFAULT_FLAGS = {
    "client_defaults": CLIENTS,
    "user_defaults": USERS,
    "broker_defaults": BROKERS,
    "ip_defaults": IPS,
}

# A comma or an equals sign that is not inside square brackets.
_OUTSIDE_BRACKETS = r"(?=[^\]]*(?:\[|$))"
_KEY = re.compile(r"[$a-zA-Z0-9._-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entities:
    """One entity type and perhaps a name; users and clients may come together."""

    types: list[str]
    names: list[str]

    @property
    def kind(self) -> str:
        return self.types[0]

    @property
    def name(self) -> str | None:
        return self.names[0] if self.names else None


def entities_of(options: argparse.Namespace) -> Entities:
    """The entities that the options name. Raises Failure in Kafka's words."""
    flags = [name for name in FLAGS if getattr(options, name) is not None]
    defaults = [name for name in DEFAULT_FLAGS if getattr(options, name)]
    long_form = list(options.entity_type or [])
    types = long_form + [FLAGS[name] for name in flags] + [DEFAULT_FLAGS[name] for name in defaults]
    names = [
        *(options.entity_names or []),
        *(getattr(options, name) for name in flags),
        *(DEFAULT for _ in defaults),
    ]
    doubled = sorted({each for each in types if types.count(each) > 1})
    if doubled:
        raise Failure(f"Duplicate entity type(s) specified: {','.join(doubled)}")
    for kind in types:
        if kind not in TYPES:
            raise Failure(
                f"Invalid entity type {kind}, the entity type must be one of {', '.join(TYPES)}"
                " with a --bootstrap-server or --bootstrap-controller argument"
            )
    if not types:
        raise Failure("At least one entity type must be specified")
    if len(types) > 1 and set(types) != {USERS, CLIENTS}:
        raise Failure(f"Only '{USERS}' and '{CLIENTS}' entity types may be specified together")
    if (options.entity_names or options.entity_type) and (flags or defaults):
        raise Failure(
            "--entity-{type,name,default} should not be used in conjunction with specific entity flags"
        )
    entities = Entities(types=types, names=names)
    _check_names(entities)
    return entities


def _check_names(entities: Entities) -> None:
    if entities.kind in (BROKERS, BROKER_LOGGERS):
        for name in entities.names:
            if name != DEFAULT and not name.isdecimal():
                raise Failure(
                    f"The entity name for {entities.kind} must be a valid integer broker id, but it is: {name}"
                )


def check_action(options: argparse.Namespace, entities: Entities) -> None:
    """Do the action and the entities fit? Raises Failure in Kafka's words."""
    if options.bootstrap_server is None:
        raise Failure("Either --bootstrap-server or --bootstrap-controller must be specified.")
    has_name = any(name != DEFAULT for name in entities.names)
    with_default = any(kind in WITH_DEFAULT for kind in entities.types)
    if options.describe:
        _check_describe(options, entities, has_name=has_name, with_default=with_default)
    else:
        _check_alter(options, entities, has_name=has_name, with_default=with_default)


def _check_describe(
    options: argparse.Namespace, entities: Entities, *, has_name: bool, with_default: bool
) -> None:
    kinds = ",".join(entities.types)
    if options.add_config or options.delete_config:
        option = "add-config" if options.add_config else "delete-config"
        raise UsageError(f'Option "[describe]" can\'t be used with option "[{option}]"')
    if DEFAULT in entities.names and not with_default:
        raise Failure(f"--entity-default must not be specified with --describe of {kinds}")
    if BROKER_LOGGERS in entities.types and not has_name:
        raise Failure(f"An entity name must be specified with --describe of {kinds}")


def _check_alter(
    options: argparse.Namespace, entities: Entities, *, has_name: bool, with_default: bool
) -> None:
    kinds = ",".join(entities.types)
    if with_default and not entities.names:
        raise Failure(
            "An entity-name or default entity must be specified with --alter of users, clients, brokers or ips"
        )
    if not with_default and not has_name:
        raise Failure(f"An entity name must be specified with --alter of {kinds}")
    if options.add_config and options.add_config_file:
        raise Failure("Only one of --add-config or --add-config-file must be specified")
    if not (options.add_config or options.add_config_file or options.delete_config):
        raise Failure(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified with --alter"
        )
    if len(entities.types) != len(entities.names):
        raise Failure("An entity name must be specified for every entity type")


def configs_to_add(options: argparse.Namespace) -> dict[str, str]:
    """What `--add-config` or its file say. Square brackets keep commas together."""
    configs: dict[str, str] = {}
    if options.add_config_file:
        configs |= read_properties(options.add_config_file)
    if options.add_config:
        for pair in re.split("," + _OUTSIDE_BRACKETS, options.add_config):
            parts = re.split(r"\s*=\s*" + _OUTSIDE_BRACKETS, pair)
            if len(parts) != 2:
                raise Failure(
                    'Invalid entity config: all configs to be added must be in the format "key=val" or '
                    ' "key=[val1,val2]" to group values which contain commas.'
                )
            configs[parts[0].strip()] = parts[1].replace("[", "").replace("]", "").strip()
    for name in configs:
        if not _KEY.fullmatch(name):
            raise Failure(f"Invalid character found for config key: {name}")
    return configs


def configs_to_delete(options: argparse.Namespace) -> list[str]:
    """The names that `--delete-config` gives."""
    return [
        name.strip()
        for names in options.delete_config or []
        for name in names.split(",")
        if name.strip()
    ]


def resource_type_of(kind: str) -> ResourceType | None:
    """The resource type of an entity type; None for those that have quotas instead."""
    from headrace.client.admin.configs import ResourceType

    return {
        TOPICS: ResourceType.TOPIC,
        BROKERS: ResourceType.BROKER,
        BROKER_LOGGERS: ResourceType.BROKER_LOGGER,
        CLIENT_METRICS: ResourceType.CLIENT_METRICS,
        GROUPS: ResourceType.GROUP,
    }.get(kind)
