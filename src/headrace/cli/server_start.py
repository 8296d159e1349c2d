"""`headrace server-start [FILE.properties] [--override name=value …]`: run a broker until it is told to stop."""

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.broker.settings.broker_settings import BrokerSettings


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    options = _parser().parse_args(arguments)
    from headrace.broker.logs import configure
    from headrace.broker.settings.broker_settings import BrokerSettings
    from headrace.broker.settings.properties import parse_overrides, parse_properties

    try:
        properties = {}
        if options.file is not None:
            properties = parse_properties(Path(options.file).read_text(encoding="utf-8"))
        properties |= parse_overrides(options.override)
        settings = BrokerSettings.from_properties(
            properties, default_log_dir=default_data_directory()
        )
    except OSError as error:
        print(f"headrace: {options.file}: {error.strerror}", file=sys.stderr)
        return 1
    except HeadraceError as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    configure(
        "json" if options.json_logs else settings.headrace_log_format,
        settings.headrace_log_level,
        broker_id=settings.node_id,
    )
    return _serve(settings)


def _parser() -> argparse.ArgumentParser:
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


def _serve(settings: "BrokerSettings") -> int:
    import logging

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

    try:
        run_forever(settings, on_ready)
    except (HeadraceError, OSError) as failure:
        logger.error("%s", failure)
        return 1
    logger.info("stopped")
    return 0
