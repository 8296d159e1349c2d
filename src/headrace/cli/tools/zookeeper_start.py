"""`headrace zookeeper-start [FILE.properties]`: run a real ZooKeeper, from the jars that PySpark brings.

Needs the extra `headrace[spark]`; Java comes with it where the machine has none.
"""

import argparse
import os
import socket
from collections.abc import Mapping
from pathlib import Path

from headrace.cli.shell.command_line import Failure, ToolParser, run_tool


def run(arguments: list[str]) -> int:
    """Run the tool. Returns only if ZooKeeper cannot be started: it takes the process over."""
    return run_tool(make_parser(), arguments, _work, needs_options=False)


def make_parser() -> ToolParser:
    parser = ToolParser(
        "zookeeper-start", "Run a ZooKeeper server. Without a file: on 127.0.0.1:2181."
    )
    parser.usage = "headrace zookeeper-start [FILE.properties]"
    parser.add_argument(
        "file", nargs="?", metavar="FILE.properties", help="settings, in ZooKeeper's names"
    )
    return parser


def _work(options: argparse.Namespace) -> int:
    argv = _command(options.file)
    # The tool becomes the server, so that signals reach it.
    return os.execv(argv[0], argv)  # noqa: S606


def _command(file: str | None) -> list[str]:
    from headrace.cli.shell.connecting import read_properties
    from headrace.coordination.zookeeper_server import command

    path = _default_file() if file is None else file
    _check(read_properties(path))
    return command(Path(path))


def _default_file() -> str:
    from headrace.cli.local.places import default_data_directory
    from headrace.coordination.zookeeper_server import default_properties

    directory = Path(default_data_directory()).parent / "zookeeper"
    file = directory / "zookeeper.properties"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file.write_text(default_properties(directory), encoding="utf-8")
    except OSError as error:
        raise _cannot_write(str(directory), error) from error
    print(f"ZooKeeper on 127.0.0.1:2181, data in {directory}", flush=True)
    return str(file)


def _check(properties: Mapping[str, str]) -> None:
    """Find out before Java does: it would tell it with a stack trace."""
    port = properties.get("clientPort")
    if port is not None:  # else it stands elsewhere in the file
        _check_port(properties.get("clientPortAddress", ""), port)
    directory = properties.get("dataDir")
    if directory is None:
        raise Failure(
            "the settings do not say where to keep the data", hint="dataDir=/some/directory"
        )
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(directory, error) from error
    if not os.access(directory, os.W_OK):
        raise _cannot_write(directory, PermissionError(0, "Permission denied"))


def _check_port(address: str, port: str) -> None:
    try:
        with socket.create_server((address, int(port))):
            pass
    except ValueError:
        raise Failure(f"clientPort={port} is not a port") from None
    except OSError as error:
        raise Failure(
            f"cannot listen on {address or '*'}:{port}",
            why=f"{error.strerror}: another program has the port, perhaps another ZooKeeper",
            hint=f"stop it ('ss -ltnp sport = :{port}' names it), or change clientPort in the file",
        ) from error


def _cannot_write(directory: str, error: OSError) -> Failure:
    return Failure(
        f"cannot write to {directory}",
        why=error.strerror or str(error),
        hint="make it writable for this user, or name another one as dataDir",
    )
