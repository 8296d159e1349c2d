"""`headrace zookeeper-start [FILE.properties]`: run a real ZooKeeper, from the jars that PySpark brings.

Needs the extra `headrace[spark]`; Java comes with it where the machine has none.
"""

import argparse
import os
import sys
from pathlib import Path

from headrace.errors import HeadraceError


def run(arguments: list[str]) -> int:
    """Run the tool. Returns only if ZooKeeper cannot be started: it takes the process over."""
    parser = argparse.ArgumentParser(
        prog="headrace zookeeper-start",
        description="Run a ZooKeeper server. Without a file: on 127.0.0.1:2181.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "file", nargs="?", metavar="FILE.properties", help="settings, in ZooKeeper's names"
    )
    options = parser.parse_args(arguments)

    from headrace.cli.server_start import default_data_directory
    from headrace.coordination.zookeeper_server import command, default_properties

    try:
        properties = Path(options.file) if options.file else None
        if properties is None:
            directory = Path(default_data_directory()).parent / "zookeeper"
            directory.mkdir(parents=True, exist_ok=True)
            properties = directory / "zookeeper.properties"
            properties.write_text(default_properties(directory), encoding="utf-8")
            print(f"ZooKeeper on 127.0.0.1:2181, data in {directory}", flush=True)
        elif not properties.is_file():
            print(f"headrace: {properties}: there is no such file", file=sys.stderr)
            return 1
        argv = command(properties)
    except (HeadraceError, OSError) as error:
        print(f"headrace: {error}", file=sys.stderr)
        return 1
    # The tool becomes the server, so that signals reach it.
    return os.execv(argv[0], argv)  # noqa: S606
