"""`headrace reassign-partitions`: move partitions to other brokers and directories. Kafka's `kafka-reassign-partitions`."""

from __future__ import annotations

import argparse

from headrace.cli.shell.command_line import (
    OK,
    ToolParser,
    UsageError,
    read_text,
    require_option,
    run_tool,
    was_given,
)
from headrace.cli.shell.connecting import (
    add_connection_options,
    add_zookeeper_option,
    ask_zookeeper,
    open_admin,
)
from headrace.cli.shell.output import add_output_option, wants_json

ACTIONS = ("generate", "execute", "verify", "cancel", "list")
_REQUIRED = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
_PERMITTED = {
    "generate": ("disable-rack-aware",),
    "execute": (
        "additional",
        "throttle",
        "replica-alter-log-dirs-throttle",
        "timeout",
        "disallow-replication-factor-change",
    ),
    "verify": ("preserve-throttles", "wait"),
    "cancel": ("preserve-throttles", "timeout"),
    "list": (),
}
_SPECIFIC = sorted(
    {name for table in (_REQUIRED, _PERMITTED) for names in table.values() for name in names}
)
_DEFAULT_TIMEOUT_MS = 10_000


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "reassign-partitions", "Move partitions to other brokers and log directories."
    )
    parser.flag("generate", "propose where the partitions of topics could go; nothing is moved")
    parser.flag("execute", "start to move, as the JSON file says")
    parser.flag("verify", "tell how far it is; once it is done, lift the throttles")
    parser.flag("cancel", "go back to where the partitions were")
    parser.flag("list", "list the moves that are going on")
    add_connection_options(parser)
    add_zookeeper_option(parser)
    parser.value(
        "topics-to-move-json-file",
        'the topics to --generate for: {"version": 1, "topics": [{"topic": "orders"}]}',
        metavar="FILE",
    )
    parser.value("broker-list", "the brokers that may get them: 0,1,2", metavar="LIST")
    parser.flag("disable-rack-aware", "propose without looking at racks")
    parser.value(
        "reassignment-json-file",
        'where to: {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}]};'
        ' "log_dirs": ["any", "/disk2"] beside the replicas names directories',
        metavar="FILE",
    )
    parser.value("throttle", "most bytes per second between brokers", type=int, metavar="BYTES")
    parser.value(
        "replica-alter-log-dirs-throttle",
        "most bytes per second between the directories of a broker",
        type=int,
        metavar="BYTES",
    )
    parser.value(
        "timeout",
        "how long the start of moves between directories may take (default: 10000)",
        type=int,
        metavar="MS",
    )
    parser.flag("additional", "even if other moves are going on; also changes their throttle")
    parser.flag("preserve-throttles", "leave the throttles as they are")
    parser.flag(
        "disallow-replication-factor-change",
        "refuse a plan that changes how many replicas there are",
    )
    parser.flag("wait", "with --verify: wait until everything has moved (not Kafka's)")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    action = _action(options)
    ask_zookeeper(options)
    from headrace.cli.moves import reassignment_steps as steps
    from headrace.cli.moves.reassignment_plan import parse_broker_list, parse_plan, parse_topics

    with open_admin(options) as admin:
        if action == "list":
            steps.print_ongoing(admin, as_json=wants_json(options))
            return OK
        if action == "generate":
            steps.generate(
                admin,
                parse_topics(read_text(options.topics_to_move_json_file)),
                parse_broker_list(options.broker_list),
                rack_aware=not options.disable_rack_aware,
            )
            return OK
        plan = parse_plan(read_text(options.reassignment_json_file))
        timeout_s = (_DEFAULT_TIMEOUT_MS if options.timeout is None else options.timeout) / 1000
        keep_throttles = options.preserve_throttles
        if action == "verify":
            steps.verify(admin, plan, preserve_throttles=keep_throttles, wait=options.wait)
        elif action == "cancel":
            steps.cancel(admin, plan, preserve_throttles=keep_throttles, timeout_s=timeout_s)
        else:
            limits = steps.Limits(
                throttle=options.throttle,
                log_dirs_throttle=options.replica_alter_log_dirs_throttle,
                additional=options.additional,
                factor_may_change=not options.disallow_replication_factor_change,
                timeout_s=timeout_s,
            )
            steps.execute(admin, plan, limits)
    return OK


def _action(options: argparse.Namespace) -> str:
    chosen = [name for name in ACTIONS if was_given(options, name)]
    if len(chosen) != 1:
        names = ", ".join(f"--{name}" for name in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {names}")
    [action] = chosen
    if options.bootstrap_server is None and options.zookeeper is None:
        raise UsageError("Please specify --bootstrap-server")
    require_option(options, *_REQUIRED[action])
    for name in _SPECIFIC:
        if was_given(options, name) and name not in (*_REQUIRED[action], *_PERMITTED[action]):
            raise UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action
