"""`headrace features describe|upgrade|downgrade|disable`: levels of the cluster's features. Kafka's `kafka-features`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import (
    OK,
    Failure,
    ToolParser,
    UsageError,
    require_option,
    run_tool,
)
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.wire.messages.api_versions import ApiVersionsResponse

COMMANDS = ("describe", "upgrade", "downgrade", "disable")
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("features", "Print and change the levels of the cluster's features.")
    parser.usage = f"headrace features {{{','.join(COMMANDS)}}} [options]"
    parser.add_argument("command", choices=COMMANDS, help="what to do")
    add_connection_options(parser)
    parser.value(
        "feature", "a feature and its level, name=level; a name alone for disable", action="append"
    )
    parser.flag("unsafe", "downgrade or disable even if that may lose metadata")
    parser.flag("dry-run", "check the change and do not make it")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "bootstrap-server")
    if options.command == "describe":
        with open_admin(options) as admin:
            _describe(admin, options)
        return OK
    levels = _levels(options)
    if not levels:
        raise UsageError(f"You must specify at least one feature to {options.command}")
    with open_admin(options) as admin:
        return _update(admin, options, levels)


def _levels(options: argparse.Namespace) -> dict[str, int]:
    """The wanted level of each feature."""
    levels: dict[str, int] = {}
    for text in options.feature or ():
        name, equals, level = (part.strip() for part in text.partition("="))
        if options.command == "disable":
            name, level = text, "0"
        elif not equals:
            raise UsageError(f"Can't parse feature=level string {text}: equals sign not found.")
        if not re.fullmatch(r"[+-]?\d{1,5}", level) or not -(2**15) <= int(level) < 2**15:
            problem = f"unable to parse {level} as a short."
            raise UsageError(f"Can't parse feature=level string {text}: {problem}")
        if name in levels:
            raise UsageError(f"Feature {name} was specified more than once.")
        levels[name] = int(level)
    return levels


def _describe(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.client.exchange import api_versions_request

    answer: ApiVersionsResponse = admin.ask_any(api_versions_request())
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    epoch = answer.finalized_features_epoch
    rows = sorted(answer.supported_features, key=lambda feature: feature.name)
    if wants_json(options):
        print_json(
            [
                {
                    "feature": each.name,
                    "supportedMinVersion": each.min_version,
                    "supportedMaxVersion": each.max_version,
                    "finalizedVersionLevel": finalized.get(each.name, 0),
                    "epoch": None if epoch < 0 else epoch,
                }
                for each in rows
            ]
        )
        return
    for each in rows:
        print(
            f"Feature: {each.name}\tSupportedMinVersion: {each.min_version}\t"
            f"SupportedMaxVersion: {each.max_version}\t"
            f"FinalizedVersionLevel: {finalized.get(each.name, 0)}\t"
            f"Epoch: {'-' if epoch < 0 else epoch}"
        )


def _update(admin: Admin, options: argparse.Namespace, levels: dict[str, int]) -> int:
    from headrace.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

    downgrade = _UNSAFE_DOWNGRADE if options.unsafe else _SAFE_DOWNGRADE
    upgrade_type = _UPGRADE if options.command == "upgrade" else downgrade
    answer = admin.ask_controller(
        UpdateFeaturesRequest(
            feature_updates=[
                FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=upgrade_type)
                for name, level in levels.items()
            ],
            validate_only=options.dry_run,
        ),
        errors_of=lambda found: [found.error_code],
    )
    for name, level in sorted(levels.items()):
        print(
            _told(options, name, level, failure=_failure(answer.error_code, answer.error_message))
        )
    if answer.error_code:
        raise Failure(f"{len(levels)} out of {len(levels)} operation(s) failed.")
    return OK


def _failure(code: int, message: str | None) -> str | None:
    from headrace.wire.error_code import ErrorCode

    return (message or ErrorCode.of(code).name) if code else None


def _told(options: argparse.Namespace, name: str, level: int, *, failure: str | None) -> str:
    is_disabled = options.command == "disable"
    if failure is not None:
        could = "Can not" if options.dry_run else "Could not"
        target = f"disable {name}" if is_disabled else f"{options.command} {name} to {level}"
        return f"{could} {target}. {failure}"
    was = "can be" if options.dry_run else "was"
    what = "disabled." if is_disabled else f"{options.command}d to {level}."
    return f"{name} {was} {what}"
