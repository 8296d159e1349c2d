"""`headrace cluster cluster-id|list-endpoints|unregister`: a cluster's id and endpoints. Kafka's `kafka-cluster`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from headrace.cli.shell.command_line import OK, ToolParser, UsageError, require_option, run_tool
from headrace.cli.shell.connecting import add_connection_options, open_admin
from headrace.cli.shell.output import add_output_option, print_json, wants_json, width

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin

COMMANDS = ("cluster-id", "list-endpoints", "unregister")


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "cluster", "Print a cluster's id or endpoints, or forget a broker for good."
    )
    parser.usage = f"headrace cluster {{{','.join(COMMANDS)}}} [options]"
    parser.add_argument("command", choices=COMMANDS, help="what to do")
    add_connection_options(parser)
    parser.add_argument("-b", dest="bootstrap_server", help=argparse.SUPPRESS)
    parser.hidden("config", dest="command_config")
    parser.value("id", "the broker to unregister", type=int)
    parser.flag("include-fenced-brokers", "list fenced brokers too")
    add_output_option(parser)
    return parser


def _work(options: argparse.Namespace) -> int:
    require_option(options, "bootstrap-server")
    if options.command == "unregister" and options.id is None:
        raise UsageError('Missing required argument "[id]"')
    with open_admin(options) as admin:
        if options.command == "cluster-id":
            _print_id(admin, options)
        elif options.command == "list-endpoints":
            _print_endpoints(admin, options)
        else:
            _unregister(admin, options)
    return OK


def _print_id(admin: Admin, options: argparse.Namespace) -> None:
    cluster_id = admin.cluster().cluster_id
    if wants_json(options):
        print_json({"clusterId": cluster_id})
    elif cluster_id is None:
        print("No cluster ID found. The Kafka version is probably too old.")
    else:
        print(f"Cluster ID: {cluster_id}")


def _print_endpoints(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.wire.messages.describe_cluster import DescribeClusterRequest
    from headrace.wire.refusal import require

    answer = admin.ask_any(
        DescribeClusterRequest(include_fenced_brokers=options.include_fenced_brokers)
    )
    require(answer.error_code, answer.error_message)
    brokers = sorted(answer.brokers, key=lambda broker: broker.broker_id)
    if wants_json(options):
        print_json(
            [
                {
                    "id": each.broker_id,
                    "host": each.host,
                    "port": each.port,
                    "rack": each.rack,
                    "isFenced": each.is_fenced,
                }
                for each in brokers
            ]
        )
        return
    hosts = width(0, [each.host for each in brokers])
    racks = width(10, [each.rack for each in brokers])
    form = f"{{:<10}} {{:<{hosts}}} {{:<10}} {{:<{racks}}} {{:<10}} {{:<15}}"
    print(form.format("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"))
    for each in brokers:
        state = "fenced" if each.is_fenced else "unfenced"
        rack = "null" if each.rack is None else each.rack
        print(form.format(each.broker_id, each.host, each.port, rack, state, "broker"))


def _unregister(admin: Admin, options: argparse.Namespace) -> None:
    from headrace.wire.messages.unregister_broker import UnregisterBrokerRequest
    from headrace.wire.refusal import require

    answer = admin.ask_controller(
        UnregisterBrokerRequest(broker_id=options.id), errors_of=lambda found: [found.error_code]
    )
    require(answer.error_code, answer.error_message)
    print(f"Broker {options.id} is no longer registered.")
