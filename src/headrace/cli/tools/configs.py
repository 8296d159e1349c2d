"""`headrace configs`: describe and alter configs of topics, brokers, groups, users, clients. Kafka's `kafka-configs`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.configs.config_entities import (
    BROKER_LOGGERS,
    DEFAULT,
    TOPICS,
    Entities,
    check_action,
    configs_to_add,
    configs_to_delete,
    entities_of,
    resource_type_of,
)
from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    UsageError,
    nearest,
    run_tool,
    tell,
)
from headrace.cli.shell.connecting import (
    add_connection_options,
    add_zookeeper_option,
    ask_zookeeper,
    open_admin,
)
from headrace.cli.shell.output import add_output_option

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "configs",
        "Describe and alter configs of topics, brokers, groups, users, clients and addresses.",
    )
    parser.flag("describe", "show configs")
    parser.flag("alter", "change configs")
    add_connection_options(parser)
    parser.hidden("bootstrap-controller")
    add_zookeeper_option(parser)
    parser.flag("all", "with --describe: also those that nobody set")
    parser.value(
        "entity-type",
        "topics, clients, users, brokers, broker-loggers, ips, client-metrics or groups",
        action="append",
        metavar="TYPE",
    )
    parser.value("entity-name", "its name", action="append", dest="entity_names", metavar="NAME")
    parser.add_argument(
        "--entity-default",
        action="append_const",
        const=DEFAULT,
        dest="entity_names",
        help="the default of the entity type",
    )
    parser.value("topic", "the topic with this name")
    parser.value("client", "the client with this id")
    parser.flag("client-defaults", "the default of all clients")
    parser.value("user", "the user with this name")
    parser.flag("user-defaults", "the default of all users")
    parser.value("broker", "the broker with this id")
    parser.flag("broker-defaults", "the default of all brokers")
    parser.value("broker-logger", "the loggers of the broker with this id")
    parser.value("ip", "the address")
    parser.flag("ip-defaults", "the default of all addresses")
    parser.value("group", "the group with this id")
    parser.value("client-metrics", "the client metrics resource with this name")
    parser.value(
        "add-config",
        "configs to set: k1=v1,k2=[v1,v2],k3=v3; brackets keep commas together",
        metavar="LIST",
    )
    parser.value("add-config-file", "a properties file with configs to set", metavar="FILE")
    parser.value("delete-config", "configs to remove: k1,k2", action="append", metavar="LIST")
    parser.hidden("force", action="store_true")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    if options.describe + options.alter != 1:
        raise UsageError("Command must include exactly one action: --describe, --alter")
    ask_zookeeper(options)
    try:
        entities = entities_of(options)
        check_action(options, entities)
        if options.describe:
            from headrace.cli.configs.config_report import describe

            with open_admin(options) as admin:
                describe(admin, options, entities)
            return OK
        return _alter(options, entities)
    except Failure as failure:
        tell(failure.what)
        if failure.hint:
            tell(f"  try: {failure.hint}")
        return FAILED


def _alter(options: argparse.Namespace, entities: Entities) -> int:
    add, delete = configs_to_add(options), configs_to_delete(options)
    from headrace.client.admin.configs import alter_configs
    from headrace.wire.refusal import Refused

    with open_admin(options) as admin:
        resource_type = resource_type_of(entities.kind)
        if resource_type is None:
            from headrace.cli.configs.quota_changes import alter_quotas_or_scram

            alter_quotas_or_scram(admin, entities, add=add, delete=delete)
        else:
            name = entities.names[0]
            if entities.kind == BROKER_LOGGERS:
                _check_loggers(admin, name, [*add, *delete])
            try:
                alter_configs(admin, resource_type, name, delete=delete, add=add)
            except Refused as refused:
                raise Failure(
                    str(refused), hint=_hint(admin, entities, refused.error_code.name, [*add])
                ) from refused
    name = entities.names[0]
    if name == DEFAULT:
        print(f"Completed updating default config for {entities.kind} in the cluster.")
    else:
        print(f"Completed updating config for {entities.kind[:-1]} {name}.")
    return OK


def _check_loggers(admin: Admin, broker: str, names: list[str]) -> None:
    from headrace.client.admin.configs import ResourceType, describe_configs

    loggers = describe_configs(admin, ResourceType.BROKER_LOGGER, [broker])[broker]
    known = {each.name for each in loggers} if isinstance(loggers, list) else set()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Failure(f"Invalid broker logger(s): {','.join(unknown)}")


def _hint(admin: Admin, entities: Entities, code: str, names: list[str]) -> str:
    """The nearest name where one is unknown."""
    from headrace.client.admin.configs import describe_configs
    from headrace.client.admin.topics import list_topics

    name = entities.names[0]
    if entities.kind == TOPICS and code == "UNKNOWN_TOPIC_OR_PARTITION":
        return nearest(name, [topic.name for topic in list_topics(admin)])
    resource_type = resource_type_of(entities.kind)
    if code != "INVALID_CONFIG" or resource_type is None:
        return ""
    described = describe_configs(admin, resource_type, [name]).get(name)
    known = [entry.name for entry in described] if isinstance(described, list) else []
    for each in names:
        if known and each not in known:
            return nearest(each, known)
    return ""
