"""A real Apache Kafka node (KRaft, broker and controller in one) on free ports and a directory of its own."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.broker import FAST_TEST_PROPERTIES, write_properties
from tests.support.jvm import java_command
from tests.support.server_process import ServerProcess, free_port

CLUSTER_ID = "aGVhZHJhY2UtdGVzdHM0Mw"
# With eligible leader replicas Kafka pins min.insync.replicas as a cluster-wide dynamic config.
WITHOUT_ELR = ("--feature", "eligible.leader.replicas.version=0")
READY_S = 60
STOP_S = 60
OWN_PROPERTIES = {
    # After kill -9 the controller lets the node register again only when the old session has run out.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class ApacheKafka:
    """Start on entry, stop on exit; `kill` and `start` again keep the data."""

    name = "apache-kafka"

    def __init__(
        self,
        directory: Path,
        *,
        properties: Mapping[str, str] | None = None,
        heap: str = "512m",
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._heap = heap
        self.port = free_port()
        self.data_dir = directory / "data"
        self._controller_port = free_port()
        self._properties_path = directory / "server.properties"
        self._process = ServerProcess(directory / "kafka.log")
        write_properties(self._properties_path, {**self._own_properties(), **(properties or {})})

    def _own_properties(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "log.dirs": str(self.data_dir),
            **FAST_TEST_PROPERTIES,
            **OWN_PROPERTIES,
        }

    @property
    def ports(self) -> Mapping[int, int]:
        return {1: self.port}

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        if not (self.data_dir / "meta.properties").exists():
            self._format()
        command = java_command("kafka.Kafka", heap=self._heap, log_level="INFO")
        self._process.start(
            [*command, str(self._properties_path)], port=self.port, ready_s=READY_S, env=os.environ
        )

    def _format(self) -> None:
        command = java_command("kafka.tools.StorageTool", heap="128m")
        subprocess.run(
            [*command, "format", "-t", CLUSTER_ID, "-c", str(self._properties_path), *WITHOUT_ELR],
            check=True,
            capture_output=True,
        )

    def stop(self) -> None:
        self._process.stop(STOP_S)

    def kill(self) -> None:
        self._process.kill()

    def log_tail(self) -> str:
        return self._process.log_tail()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.stop(STOP_S)
