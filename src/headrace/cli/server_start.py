"""`headrace server-start [FILE.properties] [--override name=value …]`: run a broker until it is told to stop."""

import argparse
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.cli.command_line import Failure, tell_failure
from headrace.cli.start_failures import explained_start, few_files
from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.broker.settings.broker_settings import BrokerSettings


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    options = make_parser().parse_args(arguments)
    from headrace.broker.logs import configure
    from headrace.broker.settings.broker_settings import BrokerSettings
    from headrace.properties import parse_overrides, parse_properties

    try:
        properties = {}
        if options.file is not None:
            properties = parse_properties(Path(options.file).read_text(encoding="utf-8"))
        properties |= parse_overrides(options.override)
        directory = default_data_directory()
        settings = BrokerSettings.from_properties(properties, default_log_dir=directory)
        alone = settings.zookeeper_connect is not None and _is_cluster_of_its_own(settings)
        if alone:
            del properties["zookeeper.connect"]
            settings = BrokerSettings.from_properties(properties, default_log_dir=directory)
    except OSError as error:
        tell_failure(
            "server-start",
            Failure(
                f"cannot read {options.file}",
                why=error.strerror or str(error),
                hint="config/server.properties is an example; without a file the defaults hold",
            ),
        )
        return 1
    except HeadraceError as error:
        tell_failure(
            "server-start", Failure(str(error), hint="docs/settings.md lists the settings")
        )
        return 1
    log_format = "json" if options.json_logs else settings.headrace_log_format
    configure(log_format, settings.headrace_log_level, broker_id=settings.node_id)
    if alone:
        logging.getLogger("headrace").warning(
            "zookeeper.connect is not used: %s holds a cluster of its own. To join others, use another log directory",
            settings.log_dirs[0],
        )
    return _serve(settings, as_json=log_format == "json")


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="headrace server-start",
        description="Run a broker. Without a file: one broker on 127.0.0.1:9092, no ZooKeeper.",
        allow_abbrev=False,
    )
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
    parser.add_argument("--json-logs", action="store_true", help="log one JSON object per line")
    return parser


def default_data_directory() -> str:
    """Where a broker keeps its data if nobody says so: where this user's programs keep theirs."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.path.join(base, "headrace", "data")


def _is_cluster_of_its_own(settings: "BrokerSettings") -> bool:
    """Whether a store in the data says so: a broker's topics are known there, not in any ZooKeeper."""
    from headrace.broker.main import STORE_FILE

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
