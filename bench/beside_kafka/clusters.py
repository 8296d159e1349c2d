"""Three brokers of either kind on this machine: Headrace with a ZooKeeper, Kafka as three nodes that are controllers too.

The ZooKeeper is counted among a Headrace cluster's processes: what Kafka's nodes do as controllers is in their figures.
Both get the same session time-out; everything else is left at its default.
"""

import os
import time
from pathlib import Path

from bench.beside_kafka.servers import (
    HEADRACE,
    KAFKA,
    READY_S,
    Node,
    headrace_command,
    kafka_command,
)
from bench.beside_kafka.topics import brokers_known_to
from headrace.coordination import zookeeper_server
from tests.support.cluster_process import serves_zookeeper
from tests.support.server_process import ServerProcess, free_port

BROKERS = (1, 2, 3)
SESSION_TIMEOUT_MS = 6_000
ZOOKEEPER_HEAP = "256m"


class Cluster:
    """Brokers by number, and whatever else runs for them."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self._zookeeper = ZooKeeper(directory / "zookeeper") if name == HEADRACE else None
        if self._zookeeper is None:
            self.nodes = _kafka_nodes(directory)
        else:
            self.nodes = _headrace_nodes(directory, self._zookeeper.port)

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes.values())

    @property
    def port(self) -> int:
        return next(node.port for node in self.nodes.values() if node.is_running)

    @property
    def pids(self) -> list[int]:
        pids = [pid for node in self.nodes.values() for pid in node.pids]
        return [*pids, self._zookeeper.pid] if self._zookeeper else pids

    def start(self) -> None:
        if self._zookeeper is not None:
            self._zookeeper.start()
        for node in self.nodes.values():
            node.launch()
        for node in self.nodes.values():
            node.wait_until_ready()
        deadline = time.monotonic() + READY_S
        while any(brokers_known_to(node.port) < len(BROKERS) for node in self.nodes.values()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: the brokers do not find each other")
            time.sleep(0.05)

    def discard(self) -> None:
        for node in self.nodes.values():
            node.discard()
        if self._zookeeper is not None:
            self._zookeeper.kill()


class ZooKeeper:
    """One server."""

    def __init__(self, directory: Path) -> None:
        data = directory / "data"
        data.mkdir(parents=True)
        self.port = free_port()
        self._properties = directory / "zookeeper.properties"
        self._properties.write_text(
            zookeeper_server.default_properties(data, port=self.port, address="127.0.0.1")
        )
        self._process = ServerProcess(directory / "zookeeper.log")

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        command = zookeeper_server.command(self._properties, heap=ZOOKEEPER_HEAP, logging=False)
        self._process.start(
            command, port=self.port, ready_s=READY_S, env=os.environ, serves=serves_zookeeper
        )

    def kill(self) -> None:
        self._process.kill()


def _headrace_nodes(directory: Path, zookeeper_port: int) -> dict[int, Node]:
    nodes = {}
    for number in BROKERS:
        port = free_port()
        own = {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
            "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        }
        nodes[number] = Node(
            HEADRACE,
            directory / f"broker-{number}",
            command=headrace_command,
            properties=own,
            port=port,
        )
    return nodes


def _kafka_nodes(directory: Path) -> dict[int, Node]:
    ports = {number: (free_port(), free_port()) for number in BROKERS}
    voters = ",".join(f"{number}@127.0.0.1:{ports[number][1]}" for number in BROKERS)
    nodes = {}
    for number, (port, controller_port) in ports.items():
        own = {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": voters,
            "broker.session.timeout.ms": str(SESSION_TIMEOUT_MS),
        }
        nodes[number] = Node(
            KAFKA,
            directory / f"broker-{number}",
            command=kafka_command,
            properties=own,
            port=port,
        )
    return nodes
