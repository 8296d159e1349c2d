"""`headrace consumer-groups`: list, describe and delete groups, reset and delete their offsets.

Kafka's `kafka-consumer-groups`. Like there, what goes wrong with a group is printed and the exit code is 0; only mistakes
in the options and unreachable brokers end with 1.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    OK,
    Failure,
    ToolParser,
    UsageError,
    forbid_together,
    nearest,
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
from headrace.cli.shell.output import add_output_option, print_json, wants_json, width

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets", "validate-regex")
VIEWS = ("members", "offsets", "state")
SCENARIOS = (
    "to-offset",
    "shift-by",
    "to-datetime",
    "by-duration",
    "to-earliest",
    "to-latest",
    "to-current",
    "from-file",
)
STATES = (
    "Empty",
    "Stable",
    "Dead",
    "CompletingRebalance",
    "PreparingRebalance",
    "Assigning",
    "Reconciling",
)
TYPES = ("Classic", "Consumer")
NOT_EXECUTED = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this"
    " command will require either --dry-run or --execute to be specified. You should add the"
    " --dry-run option explicitly if you are scripting this command and want to keep the current"
    " default behavior without prompting."
)


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "consumer-groups",
        "List, describe and delete consumer groups, reset and delete their offsets.",
    )
    add_connection_options(parser)
    add_zookeeper_option(parser)
    parser.flag("list", "list the groups")
    parser.flag("describe", "show groups: offsets and lag, members, or state")
    parser.flag("delete", "delete groups")
    parser.flag("reset-offsets", "set where groups without members go on reading")
    parser.flag("delete-offsets", "forget what a group has committed for topics")
    parser.value("validate-regex", "say whether this is a regular expression", metavar="REGEX")
    parser.value("group", "the group; may be repeated", action="append")
    parser.flag("all-groups", "all groups")
    parser.value(
        "topic", "the topic, or topic:0,1,2; may be repeated", action="append", metavar="TOPIC"
    )
    parser.flag("all-topics", "all topics of the group")
    parser.flag("members", "with --describe: show the members")
    parser.flag("offsets", "with --describe: show the offsets (default)")
    parser.value(
        "state",
        "with --describe: show the state; with --list: show it, and only the groups in these states",
        nargs="?",
        const="",
        metavar="STATES",
    )
    parser.value(
        "type",
        "with --list: show the type, and only the groups of these types",
        nargs="?",
        const="",
        metavar="TYPES",
    )
    parser.flag("verbose", "with --describe: show more")
    _add_reset_options(parser)
    parser.value("timeout", "how long to wait, in ms", type=int, default=30000, metavar="MS")
    add_output_option(parser)
    return parser


def _add_reset_options(parser: ToolParser) -> None:
    parser.flag("dry-run", "only show what would be reset (default)")
    parser.flag("execute", "reset")
    parser.flag("export", "print the result as CSV")
    parser.value("to-offset", "reset to this offset", type=int, metavar="N")
    parser.value("shift-by", "reset by so many offsets, back with a minus", type=int, metavar="N")
    parser.value("to-datetime", "reset to a time: YYYY-MM-DDThh:mm:ss.sss", metavar="TIME")
    parser.value("by-duration", "reset to a duration ago: PnDTnHnMnS", metavar="DURATION")
    parser.flag("to-earliest", "reset to the first offset there is")
    parser.flag("to-latest", "reset to the end")
    parser.flag("to-current", "reset to what is committed")
    parser.value("from-file", "reset to what a CSV file says", metavar="FILE")


def _work(options: argparse.Namespace) -> int:
    _check(options)
    if options.validate_regex is not None:
        _validate_regex(options.validate_regex)
        return OK
    from headrace.wire.error_code import ErrorCode
    from headrace.wire.refusal import Refused

    with open_admin(options, timeout_s=options.timeout / 1000) as admin:
        try:
            _act(admin, options)
        except Refused as refused:
            print(f"\nError: Executing consumer group command failed due to {refused}")
            if refused.error_code is ErrorCode.GROUP_ID_NOT_FOUND and options.group:
                _tell_nearest_group(admin, options.group[0])
        except Failure as failure:
            print(f"\nError: Executing consumer group command failed due to {failure.what}")
            if failure.hint:
                tell(f"  try: {failure.hint}")
    return OK


def _act(admin: Admin, options: argparse.Namespace) -> None:
    if options.list:
        _list(admin, options)
    elif options.describe:
        from headrace.cli.groups.group_report import describe

        describe(admin, options, chosen_groups(admin, options))
    elif options.delete:
        _delete(admin, options)
    elif options.reset_offsets:
        from headrace.cli.groups.group_reset import reset

        reset(admin, options, chosen_groups(admin, options))
    else:
        from headrace.cli.groups.group_reset import delete

        delete(admin, options)


def _check(options: argparse.Namespace) -> None:
    ask_zookeeper(options)
    if options.validate_regex is None:
        require_option(options, "bootstrap-server")
    if sum(was_given(options, action) for action in ACTIONS) != 1:
        actions = ", ".join(f"--{action}" for action in ACTIONS)
        raise UsageError(f"Command must include exactly one action: {actions}")
    _check_scope(options)
    if options.delete and options.topic:
        raise UsageError(
            "The consumer does not support topic-specific offset deletion from a consumer group."
        )
    if options.delete_offsets and not (options.group and options.topic):
        raise UsageError("Option [delete-offsets] takes the following options: [group], [topic]")
    if options.reset_offsets:
        _check_reset(options)
    forbid_together(options, "group", ["all-groups", "list"])
    forbid_together(options, "topic", ["list", "describe"])


def _check_scope(options: argparse.Namespace) -> None:
    has_groups = bool(options.group or options.all_groups)
    for action in ("describe", "delete", "reset-offsets"):
        if was_given(options, action) and not has_groups:
            raise UsageError(f"Option [{action}] takes one of these options: [group], [all-groups]")
    if options.describe:
        if sum(was_given(options, view) or _is_bare(options, view) for view in VIEWS) > 1:
            raise UsageError(
                "Option [describe] takes at most one of these options: [members], [offsets], [state]"
            )
        if options.state:
            raise UsageError("Option [describe] does not take a value for [state]")


def _check_reset(options: argparse.Namespace) -> None:
    if options.dry_run and options.execute:
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not options.dry_run and not options.execute:
        tell(NOT_EXECUTED)
    for scenario in SCENARIOS:
        forbid_together(options, scenario, SCENARIOS)
    if not any(was_given(options, scenario) for scenario in SCENARIOS):
        scenarios = ", ".join(f"[{scenario}]" for scenario in SCENARIOS)
        raise UsageError(
            f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]"
        )
    if not (options.topic or options.all_topics or options.from_file):
        raise UsageError("One of the reset scopes should be defined: --all-topics, --topic.")


def _is_bare(options: argparse.Namespace, view: str) -> bool:
    return view == "state" and options.state == ""


def _validate_regex(text: str) -> None:
    import re

    try:
        re.compile(text)
    except re.error as wrong:
        print(f"The regular expression `{text}` is invalid: {wrong.msg}.")
    else:
        print(f"The regular expression `{text}` is valid.")


def chosen_groups(admin: Admin, options: argparse.Namespace) -> list[str]:
    """The groups that the options mean."""
    if not options.all_groups:
        return list(options.group)
    from headrace.client.admin.groups import list_consumer_groups

    return [group.group_id for group in list_consumer_groups(admin)]


def _tell_nearest_group(admin: Admin, name: str) -> None:
    from headrace.client.admin.groups import list_consumer_groups

    hint = nearest(name, [group.group_id for group in list_consumer_groups(admin)])
    tell("  try: " + (hint or "'headrace consumer-groups --list' shows what there is"))


def _filter(text: str | None, valid: tuple[str, ...], what: str) -> list[str]:
    if not text:
        return []
    by_lower = {each.lower(): each for each in valid}
    chosen = []
    for part in text.split(","):
        name = by_lower.get(part.strip().lower().replace("_", ""))
        if name is None:
            raise UsageError(f"Invalid {what} list '{text}'. Valid {what}s are: {', '.join(valid)}")
        chosen.append(name)
    return chosen


def _list(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.client.admin.groups import list_consumer_groups

    states = _filter(options.state, STATES, "state")
    types = _filter(options.type, TYPES, "type")
    groups = list_consumer_groups(admin, states=states, types=[each.lower() for each in types])
    if wants_json(options):
        print_json(
            [
                {"group": each.group_id, "type": each.group_type, "state": each.state}
                for each in groups
            ]
        )
        return
    columns = [("GROUP", width(15, [each.group_id for each in groups]) + 10)]
    if options.type is not None:
        columns.append(("TYPE", 20))
    if options.state is not None:
        columns.append(("STATE", 20))
    if len(columns) == 1:
        for each in groups:
            print(each.group_id)
        return
    form = " ".join(f"{{{title}:<{size}}}" for title, size in columns)
    print(form.format(GROUP="GROUP", TYPE="TYPE", STATE="STATE"))
    for each in groups:
        print(form.format(GROUP=each.group_id, TYPE=each.group_type, STATE=each.state))


def _delete(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.client.admin.groups import delete_groups

    results = delete_groups(admin, chosen_groups(admin, options))
    if wants_json(options):
        print_json(
            [
                {"group": group, "error": None if why is None else str(why)}
                for group, why in results.items()
            ]
        )
        return
    deleted = ", ".join(f"'{group}'" for group, why in results.items() if why is None)
    if not any(results.values()):
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for group, why in results.items():
        if why is not None:
            print(f"* Group '{group}' could not be deleted due to: {why.error_code.name}: {why}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")
