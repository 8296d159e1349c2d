"""`headrace server-start [FILE.properties] [--override name=value …]`: run a broker until it is told to stop."""

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.local.places import default_data_directory
from headrace.cli.local.start_failures import explained_start, few_files
from headrace.cli.shell.command_line import Failure, ToolParser, read_text, run_tool, tell_failure
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.settings.broker_settings import BrokerSettings


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(make_parser(), arguments, _work, needs_options=False)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "server-start",
        "Run a broker. Without a file: one broker on 127.0.0.1:9092, no ZooKeeper.",
    )
    parser.usage = "headrace server-start [FILE.properties] [options]"
    parser.add_argument(
        "file", nargs="?", metavar="FILE.properties", help="settings, in Kafka's names"
    )
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="name=value",
        help="a setting that counts more than the file's; may be given several times",
    )
    parser.flag("json-logs", "log one JSON object per line")
    return parser


def _work(options: argparse.Namespace) -> int:
    from headrace.broker.telemetry.log_output import configure

    settings, is_alone = _settings(options)
    log_format = "json" if options.json_logs else settings.headrace_log_format
    configure(log_format, settings.headrace_log_level, broker_id=settings.node_id)
    if is_alone:
        logging.getLogger("headrace").warning(
            "zookeeper.connect is not used: %s holds a cluster of its own. To join others, use another log directory",
            settings.log_dirs[0],
        )
    return _serve(settings, as_json=log_format == "json")


def _settings(options: argparse.Namespace) -> "tuple[BrokerSettings, bool]":
    """The settings, and whether they leave out a ZooKeeper that was named. Raises Failure."""
    from headrace.properties import parse_overrides, parse_properties
    from headrace.settings.broker_settings import BrokerSettings

    try:
        properties = {} if options.file is None else parse_properties(read_text(options.file))
        properties |= parse_overrides(options.override)
        directory = default_data_directory()
        settings = BrokerSettings.from_properties(properties, default_log_dir=directory)
        if settings.zookeeper_connect is None or not _is_cluster_of_its_own(settings):
            return settings, False
        del properties["zookeeper.connect"]
        return BrokerSettings.from_properties(properties, default_log_dir=directory), True
    except Failure as unreadable:
        unreadable.hint = "config/server.properties is an example; without a file the defaults hold"
        raise
    except HeadraceError as error:
        raise Failure(str(error), hint="docs/settings.md lists the settings") from error


def _is_cluster_of_its_own(settings: "BrokerSettings") -> bool:
    """Whether a store in the data says so: a broker's topics are known there, not in any ZooKeeper."""
    from headrace.broker.cluster.store_identity import STORE_FILE

    return Path(settings.log_dirs[0], STORE_FILE).exists()


def _tell(failure: Failure, *, as_json: bool) -> None:
    if as_json:
        parts = (failure.what, failure.why, failure.hint)
        logging.getLogger("headrace").error("%s", " · ".join(filter(None, parts)))
    else:
        tell_failure("server-start", failure)


def _serve(settings: "BrokerSettings", *, as_json: bool) -> int:
    import resource

    from headrace.broker.main import Broker, run_forever

    logger = logging.getLogger("headrace")
    logger.info("data in %s", ", ".join(settings.log_dirs))
    for warning in settings.warnings:
        logger.warning("%s", warning)

    def on_ready(broker: Broker) -> None:
        addresses = ", ".join(
            f"{each.host or '*'}:{broker.ports[each.name]}" for each in settings.listeners
        )
        logger.info("broker %d is ready on %s", settings.node_id, addresses)

    remark = few_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    if remark:
        logger.warning("%s", remark)
    try:
        run_forever(settings, on_ready)
    except (HeadraceError, OSError) as failure:
        _tell(explained_start(failure, settings), as_json=as_json)
        return 1
    logger.info("stopped")
    return 0
