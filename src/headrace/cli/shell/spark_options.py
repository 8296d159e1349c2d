"""Options of the tools that run Spark: the brokers and the schema registry to connect to, and Spark's master."""

import os
from typing import Final

from headrace.cli.shell.command_line import ToolParser

_DEFAULT_BROKER: Final = "localhost:9092"
_DEFAULT_REGISTRY: Final = "http://localhost:8081"


def add_servers_option(parser: ToolParser) -> None:
    """The brokers: from the command line, else from the environment, else this machine's."""
    default = os.environ.get("HEADRACE_BOOTSTRAP_SERVERS", _DEFAULT_BROKER)
    parser.value(
        "bootstrap-server",
        f"the brokers to connect to first (HEADRACE_BOOTSTRAP_SERVERS; now {default})",
        default=default,
        metavar="SERVERS",
    )


def add_registry_option(parser: ToolParser) -> None:
    """The schema registry of topics that need one and name none."""
    default = os.environ.get("HEADRACE_SCHEMA_REGISTRY", _DEFAULT_REGISTRY)
    parser.value(
        "schema-registry",
        f"the schema registry of topics whose format needs one (HEADRACE_SCHEMA_REGISTRY; now {default})",
        default=default,
        metavar="URL",
    )


def add_master_option(parser: ToolParser) -> None:
    """Where Spark runs."""
    parser.value(
        "master",
        "Spark's master: local[*] (default), spark://host:port, …",
        default="local[*]",
        metavar="URL",
    )
