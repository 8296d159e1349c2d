"""`headrace topics`: create, list, describe, alter and delete topics. Kafka's `kafka-topics`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    UsageError,
    forbid_together,
    require_option,
    run_tool,
    tell,
    was_given,
)
from headrace.cli.shell.connecting import (
    add_connection_options,
    add_zookeeper_option,
    ask_zookeeper,
    open_admin,
)
from headrace.cli.shell.output import add_output_option, print_json, wants_json
from headrace.cli.topics.topic_choice import FILTERS, matching_topics

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin

ACTIONS = ("list", "describe", "create", "alter", "delete")
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_')"
    " could collide. To avoid issues it is best to use either, but not both."
)


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("topics", "Create, list, describe, alter and delete topics.")
    parser.flag("list", "list the topics")
    parser.flag("describe", "show topics and their partitions")
    parser.flag("create", "create a topic")
    parser.flag("alter", "give a topic more partitions")
    parser.flag("delete", "delete topics")
    add_connection_options(parser)
    add_zookeeper_option(parser)
    parser.value("topic", "the topic; a regular expression except with --create")
    parser.value("topic-id", "describe the topic with this id")
    parser.value("partitions", "how many partitions", type=int, metavar="N")
    parser.value("replication-factor", "how many replicas of each", type=int, metavar="N")
    parser.value(
        "replica-assignment",
        "the brokers of each partition's replicas: 0:1,1:2 is two partitions of two replicas",
        metavar="LIST",
    )
    parser.value(
        "config",
        "a setting of the new topic; may be repeated",
        action="append",
        metavar="NAME=VALUE",
    )
    parser.hidden("delete-config", action="append")
    parser.flag("if-exists", "do nothing where the topic does not exist")
    parser.flag("if-not-exists", "do nothing where the topic exists")
    parser.flag("exclude-internal", "leave out internal topics")
    parser.flag("under-replicated-partitions", "describe only those with replicas out of sync")
    parser.flag("unavailable-partitions", "describe only those without a live leader")
    parser.flag("under-min-isr-partitions", "describe only those below min.insync.replicas")
    parser.flag("at-min-isr-partitions", "describe only those exactly at min.insync.replicas")
    parser.flag("topics-with-overrides", "describe only topics with settings of their own")
    parser.value(
        "partition-size-limit-per-response",
        "how many partitions to ask for at a time",
        type=int,
        default=2000,
        metavar="N",
    )
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    _check(options)
    from headrace.wire.refusal import Refused

    with open_admin(options) as admin:
        try:
            if options.create:
                _create(admin, options)
            elif options.alter:
                _alter(admin, options)
            elif options.list:
                _list(admin, options)
            elif options.describe:
                from headrace.cli.topics.topic_report import describe

                describe(admin, options)
            else:
                _delete(admin, options)
        except Refused as refused:
            print(f"Error while executing topic command : {refused}")
            return FAILED
        except Failure as missing:
            print(f"Error while executing topic command : {missing.what}")
            if missing.hint:
                tell(f"  try: {missing.hint}")
            return FAILED
    return OK


def _check(options: argparse.Namespace) -> None:
    if sum(was_given(options, action) for action in ACTIONS) != 1:
        raise UsageError(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    if options.delete_config:
        tell(
            "delete-config option is no longer supported and deprecated since version 4.0."
            " The config will be fully removed in future releases."
        )
    ask_zookeeper(options)
    if options.bootstrap_server is None:
        raise UsageError("--bootstrap-server must be specified")
    if options.describe and options.if_exists and not (options.topic or options.topic_id):
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if not options.list and not options.describe:
        require_option(options, "topic")
    if options.alter:
        if options.config:
            raise UsageError(
                'Option combination "[bootstrap-server],[config]" can\'t be used with option "[alter]"'
                " (To alter topic configurations, the kafka-configs tool can be used.)"
            )
        require_option(options, "partitions")
    _check_combinations(options)


def _check_combinations(options: argparse.Namespace) -> None:
    for name, allowed in (
        ("config", ("alter", "create")),
        ("partitions", ("alter", "create")),
        ("replication-factor", ("create",)),
        ("replica-assignment", ("alter", "create")),
        ("topics-with-overrides", ("describe",)),
        ("if-exists", ("alter", "delete", "describe")),
        ("if-not-exists", ("create",)),
        ("exclude-internal", ("list", "describe")),
        *((each, ("describe",)) for each in FILTERS),
    ):
        forbid_together(options, name, [action for action in ACTIONS if action not in allowed])
    if options.create:
        forbid_together(options, "replica-assignment", ["partitions", "replication-factor"])
    for each in FILTERS:
        forbid_together(options, each, ["topics-with-overrides", *FILTERS])


def _create(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.client.admin.topics import BROKER_DEFAULT, create_topic
    from headrace.wire.error_code import ErrorCode
    from headrace.wire.refusal import Refused

    configs = _configs(options.config or [])
    if "." in options.topic or "_" in options.topic:
        print(COLLISION_WARNING)
    partitions, factor = options.partitions, options.replication_factor
    if factor is not None and not 1 <= factor <= 32767:
        raise Failure("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise Failure("The partitions must be greater than 0")
    try:
        create_topic(
            admin,
            options.topic,
            partitions=BROKER_DEFAULT if partitions is None else partitions,
            replication_factor=BROKER_DEFAULT if factor is None else factor,
            assignment=_assignment(options.replica_assignment),
            configs=configs,
        )
    except Refused as refused:
        if refused.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise
        if options.if_not_exists:
            return
        raise Failure(
            str(refused), hint="--if-not-exists leaves one that is there as it is"
        ) from refused
    print(f"Created topic {options.topic}.")


def _configs(pairs: list[str]) -> dict[str, str]:
    configs = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise Failure(
                "requirement failed: Invalid topic config: all configs to be added must be in the"
                ' format "key=val".'
            )
        configs[name.strip()] = value.strip()
    return configs


def _assignment(text: str | None) -> dict[int, list[int]] | None:
    if text is None:
        return None
    assignment: dict[int, list[int]] = {}
    for partition, part in enumerate(text.split(",")):
        try:
            brokers = [int(number) for number in part.split(":")]
        except ValueError:
            raise UsageError(
                f"--replica-assignment: '{part}' is not a list of broker ids"
            ) from None
        doubled = sorted({each for each in brokers if brokers.count(each) > 1})
        if doubled:
            raise Failure(
                "Partition replica lists may not contain duplicate entries: "
                + ",".join(map(str, doubled))
            )
        assignment[partition] = brokers
        if len(brokers) != len(assignment[0]):
            raise Failure(f"Partition {partition} has different replication factor: {brokers}")
    return assignment


def _alter(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.client.admin.topics import grow_topics, partitions_of

    names = matching_topics(
        admin, options.topic, exclude_internal=False, must_exist=not options.if_exists
    )
    if not names:
        return
    assignments = {}
    assignment = _assignment(options.replica_assignment)
    if assignment is not None:
        for name, numbers in partitions_of(admin, names).items():
            have = len(numbers) if isinstance(numbers, list) else 0
            assignments[name] = [
                brokers for partition, brokers in assignment.items() if partition >= have
            ]
    grow_topics(admin, dict.fromkeys(names, options.partitions), assignments)


def _list(admin: Admin, options: argparse.Namespace) -> None:
    names = matching_topics(
        admin, options.topic, exclude_internal=options.exclude_internal, must_exist=False
    )
    if wants_json(options):
        print_json(names)
    else:
        print("\n".join(names))


def _delete(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.client.admin.topics import delete_topics

    names = matching_topics(
        admin, options.topic, exclude_internal=False, must_exist=not options.if_exists
    )
    if names:
        delete_topics(admin, names)
