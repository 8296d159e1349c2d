"""The servers that are compared, each as one process on a free port with a directory of its own.

Apache Kafka runs as its own start script would run it (the script's JVM flags, 1 GB of heap, its default settings);
Headrace with its default settings; the floor is `bench.beside_kafka.floor`. Only addresses, directories and what a
single node needs (internal topics with one replica) are set.
"""

import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from tests.support import tools
from tests.support.broker import write_properties
from tests.support.jvm import LOGGING
from tests.support.server_process import (
    METADATA_OF_NO_TOPIC,
    ServerProcess,
    free_port,
)

HEADRACE, KAFKA, FLOOR = "headrace", "kafka", "floor"
READY_S = 60.0
STOP_S = 60.0
POLL_S = 0.002
KAFKA_HEAP = "1G"
CLUSTER_ID = "aGVhZHJhY2UtYmVuY2g0Mw"
# What kafka-run-class.sh gives a broker.
JVM_FLAGS = (
    f"-Xmx{KAFKA_HEAP}",
    f"-Xms{KAFKA_HEAP}",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)
ONE_REPLICA = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


class Server(Protocol):
    """One or more processes that speak Kafka's protocol; `port` is that of any of them."""

    @property
    def name(self) -> str: ...
    @property
    def bootstrap(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def pids(self) -> list[int]: ...


class Node:
    """One process; `start` tells how many seconds passed until its first answered request."""

    def __init__(
        self,
        name: str,
        directory: Path,
        *,
        command: Callable[[Path], list[str]],
        properties: Mapping[str, str],
        port: int,
    ) -> None:
        self.name = name
        self.port = port
        self.directory = directory
        self.data_dir = directory / "data"
        directory.mkdir(parents=True, exist_ok=True)
        self._properties_path = directory / "server.properties"
        write_properties(self._properties_path, {**properties, "log.dirs": str(self.data_dir)})
        self._command = command
        self._process = ServerProcess(directory / "server.log")

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pids(self) -> list[int]:
        return [self._process.pid]

    @property
    def is_running(self) -> bool:
        return self._process.is_running()

    def start(self) -> float:
        began = self.launch()
        self.wait_until_ready()
        return time.perf_counter() - began

    def launch(self) -> float:
        """Start without waiting; returns when that was."""
        if self.name == KAFKA and not (self.data_dir / "meta.properties").exists():
            _format(self._properties_path)
        began = time.perf_counter()
        self._process.launch(self._command(self._properties_path), os.environ)
        return began

    def wait_until_ready(self) -> None:
        """Wait until it answers Metadata and names itself in the answer."""
        deadline = time.monotonic() + READY_S
        while not _serves(self.port):
            if time.monotonic() > deadline or not self._process.is_running():
                self._process.kill()
                raise TimeoutError(f"{self.name} does not serve:\n{self._process.log_tail()}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        self._process.stop(STOP_S)

    def kill(self) -> None:
        self._process.kill()

    def discard(self) -> None:
        """End it if it runs, and remove everything that it wrote."""
        self._process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)


def _serves(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(METADATA_OF_NO_TOPIC)
            answer = connection.makefile("rb").read(12)
    except OSError:
        return False
    return len(answer) == 12 and struct.unpack_from(">i", answer, 8)[0] > 0


def headrace(directory: Path, properties: Mapping[str, str] | None = None) -> Node:
    port = free_port()
    own = {"broker.id": "1", "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    return Node(
        HEADRACE,
        directory,
        command=headrace_command,
        properties={**own, **ONE_REPLICA, **(properties or {})},
        port=port,
    )


def headrace_command(properties: Path) -> list[str]:
    return [sys.executable, "-m", "headrace.cli.main", "server-start", str(properties)]


def kafka(directory: Path, properties: Mapping[str, str] | None = None) -> Node:
    port, controller_port = free_port(), free_port()
    own = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
    }
    return Node(
        KAFKA,
        directory,
        command=kafka_command,
        properties={**own, **ONE_REPLICA, **(properties or {})},
        port=port,
    )


def floor(directory: Path) -> Node:
    port = free_port()
    return Node(FLOOR, directory, command=floor_command, properties={"port": str(port)}, port=port)


def floor_command(properties: Path) -> list[str]:
    return [sys.executable, "-m", "bench.beside_kafka.floor", str(properties)]


def kafka_command(properties: Path) -> list[str]:
    return [*java("kafka.Kafka", JVM_FLAGS, log_level="INFO"), str(properties)]


def java(main: str, flags: tuple[str, ...] = (), *, log_level: str = "ERROR") -> list[str]:
    """The command that runs a class of Kafka's jars with Java's default, warm-up-then-fast compiler."""
    return [
        str(tools.find("java")),
        *flags,
        f"-Dlog4j2.configurationFile={LOGGING}",
        f"-Dtest.log.level={log_level}",
        "-cp",
        f"{tools.find('kafka-jars')}/*",
        main,
    ]


def _format(properties: Path) -> None:
    command = java("kafka.tools.StorageTool", ("-Xmx128m",))
    subprocess.run(
        [*command, "format", "-t", CLUSTER_ID, "-c", str(properties)],
        check=True,
        capture_output=True,
    )
