"""`headrace broker-api-versions`: which versions brokers offer, and which of them are used here."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import OK, ToolParser, require_option, run_tool
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json

if TYPE_CHECKING:
    from headrace.client.exchange import VersionRanges

# What only controllers ask each other, or brokers their controller: no broker offers it to clients.
INTERNAL = frozenset({52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82})
FIRST_OF_OUR_OWN = 1000  # what Headrace's brokers ask each other


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser("broker-api-versions", "Print the API versions that brokers offer.")
    add_connection_options(parser)
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "bootstrap-server")
    with open_admin(options) as admin:
        as_json = []
        for node in sorted(admin.cluster().nodes.values(), key=lambda node: node.broker_id):
            offered = admin.versions_of(node.broker_id)
            if wants_json(options):
                as_json.append({"broker": node.broker_id, "apis": _apis(offered)})
                continue
            rack = "null" if node.rack is None else node.rack
            print(f"{node.address} (id: {node.broker_id} rack: {rack} isFenced: false) -> (")
            print(",\n".join(f"\t{line}" for line in lines(offered)))
            print(")")
    if wants_json(options):
        print_json(as_json)
    return OK


def lines(offered: VersionRanges) -> list[str]:
    """One line per API that we know or the broker offers, in the order of their numbers."""
    from headrace.wire.api_keys import ApiKey, request_class

    known = {key.value: key.title for key in ApiKey}
    result = []
    for number in sorted({*known, *offered}):
        name = f"{known.get(number, 'UNKNOWN')}({number})"
        if number not in offered:
            if number not in INTERNAL and number < FIRST_OF_OUR_OWN:
                result.append(f"{name}: UNSUPPORTED")
            continue
        low, high = offered[number]
        text = f"{name}: {low}" if low == high else f"{name}: {low} to {high}"
        if number in known:
            our_low, our_high = request_class(number).VERSIONS
            usable = min(high, our_high)
            text += (
                f" [usable: {usable}]" if usable >= max(low, our_low) else " [unusable: node too "
            )
            if usable < max(low, our_low):
                text += "old]" if high < our_low else "new]"
        result.append(text)
    return result


def _apis(offered: VersionRanges) -> list[dict[str, object]]:
    from headrace.wire.api_keys import ApiKey

    names = {key.value: key.title for key in ApiKey}
    return [
        {"key": key, "name": names.get(key), "minVersion": low, "maxVersion": high}
        for key, (low, high) in sorted(offered.items())
    ]
