"""ZooKeeper, brokers, schema registry and REST proxy as child processes of a tool: start, wait until they serve, stop. A rim module.

Whoever starts them ends them: `close` leaves none behind, and where the tool itself is killed they end with it. Waiting ends at
once when somebody asked the tool to stop.
"""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from headrace.cli.local.port_reservations import HOST
from headrace.cli.shell.command_line import Failure
from headrace.cli.shell.stopping import StopRequest
from headrace.tied_process import TiedProcess

PATIENCE_S: Final = 90.0  # for a slow machine with something else to do
_LOOK_AGAIN_S: Final = 0.02
_STOP_S: Final = 20.0
_LOG_TAIL_LINES: Final = 12


class Stopped(Exception):
    """Somebody asked the tool to end while it waited."""


class ServerProcess:
    """One child with its log file."""

    def __init__(self, name: str, log_path: Path) -> None:
        self.name = name
        self.log_path = log_path
        self._process: TiedProcess | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def launch(self, argv: Sequence[str]) -> None:
        """Start it, in a session of its own: Ctrl-C in our terminal is ours to pass on, in good order."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            self._process = TiedProcess(argv, stdout=log, stderr=subprocess.STDOUT)

    def signal(self, number: signal.Signals) -> None:
        if self.is_running:
            assert self._process is not None
            self._process.send_signal(number)

    def kill(self) -> None:
        """End it as a power cut would."""
        self.signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def wait_for_end(self, timeout_s: float = _STOP_S) -> None:
        """Wait until it has ended; insist after a while."""
        if self._process is None:
            return
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def log_tail(self) -> str:
        if not self.log_path.exists():
            return ""
        lines = self.log_path.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """What to start. Without a port for ZooKeeper there is one broker, on its own."""

    directory: Path
    broker_ports: Sequence[int]
    http_ports: Sequence[int] = ()
    zookeeper_port: int | None = None
    registry_port: int | None = None
    rest_port: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


class LocalServers:
    """The servers of one plan; brokers are numbered from 1. Use it in a `with`: at its end none is left."""

    def __init__(self, plan: ClusterPlan, stop: StopRequest) -> None:
        self.plan = plan
        self._stop = stop
        self._zookeeper: ServerProcess | None = None
        logs = plan.directory / "logs"
        if plan.zookeeper_port is not None:
            self._zookeeper = ServerProcess("ZooKeeper", logs / "zookeeper.log")
        self._registry: ServerProcess | None = None
        if plan.registry_port is not None:
            self._registry = ServerProcess("the schema registry", logs / "schema-registry.log")
        self._rest: ServerProcess | None = None
        if plan.rest_port is not None:
            self._rest = ServerProcess("the REST proxy", logs / "rest-proxy.log")
        self.brokers = {
            number: ServerProcess(f"broker {number}", logs / f"broker-{number}.log")
            for number in range(1, len(plan.broker_ports) + 1)
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self.plan.broker_ports)

    @property
    def all(self) -> list[ServerProcess]:
        others = (self._rest, self._registry, self._zookeeper)
        return [*self.brokers.values(), *(each for each in others if each is not None)]

    # ---- starting

    def start(self) -> None:
        """Start everything; returns when all brokers serve and know each other."""
        if self._zookeeper is not None:
            self.start_zookeeper()
        for number in self.brokers:
            self.launch_broker(number)
        self.wait_until(
            lambda: self.registered() == set(self.brokers), "all brokers serve", PATIENCE_S
        )
        if self._registry is not None:
            self.start_registry()
        if self._rest is not None:
            self.start_rest()

    def start_zookeeper(self) -> None:
        """Start ZooKeeper and wait until it serves."""
        from headrace.coordination.zookeeper_server import command, default_properties

        zookeeper, port = self._zookeeper, self.plan.zookeeper_port
        assert zookeeper is not None
        assert port is not None
        data = self.plan.directory / "zookeeper"
        data.mkdir(parents=True, exist_ok=True)
        properties = data / "zookeeper.properties"
        properties.write_text(
            default_properties(data, port=port, address=HOST),
            encoding="utf-8",
        )
        zookeeper.launch(command(properties, heap="256m"))
        self.wait_until(lambda: _zookeeper_serves(port), "ZooKeeper serves", PATIENCE_S)

    def start_registry(self) -> None:
        """Start the schema registry, for running brokers, and wait until it serves."""
        registry, port = self._registry, self.plan.registry_port
        assert registry is not None
        assert port is not None
        self._start_http_program(
            registry,
            port,
            "schema-registry-start",
            {"kafkastore.bootstrap.servers": self.bootstrap_servers},
        )

    def start_rest(self) -> None:
        """Start the REST proxy, for running brokers, and wait until it serves."""
        rest, port, registry_port = self._rest, self.plan.rest_port, self.plan.registry_port
        assert rest is not None
        assert port is not None
        registry = "" if registry_port is None else f"http://{HOST}:{registry_port}"
        settings = {"bootstrap.servers": self.bootstrap_servers, "schema.registry.url": registry}
        self._start_http_program(rest, port, "rest-start", settings)

    def _start_http_program(
        self, server: ServerProcess, port: int, tool: str, settings: Mapping[str, str]
    ) -> None:
        overrides = {"listeners": f"http://{HOST}:{port}", **settings}
        server.launch(
            [
                *(sys.executable, "-m", "headrace.cli.main", tool),
                *(f"--override={name}={value}" for name, value in overrides.items()),
            ]
        )
        self.wait_until(lambda: _is_healthy(port), f"{server.name} serves", PATIENCE_S)

    def launch_broker(self, number: int) -> None:
        """Start a broker, or start it again on its data. Does not wait."""
        plan = self.plan
        settings = {
            "broker.id": str(number),
            "listeners": f"PLAINTEXT://{HOST}:{plan.broker_ports[number - 1]}",
            "log.dirs": str(plan.directory / f"broker-{number}"),
        }
        if plan.http_ports:
            settings["headrace.http.listeners"] = f"http://{HOST}:{plan.http_ports[number - 1]}"
        if plan.zookeeper_port is not None:
            settings["zookeeper.connect"] = f"{HOST}:{plan.zookeeper_port}"
        overrides = [
            f"--override={name}={value}" for name, value in (settings | dict(plan.settings)).items()
        ]
        self.brokers[number].launch(
            [sys.executable, "-m", "headrace.cli.main", "server-start", *overrides]
        )

    def registered(self) -> set[int]:
        """The brokers that every running broker knows of; none while one does not answer."""
        from headrace.client.connection import Connection
        from headrace.client.exchange import Disconnected
        from headrace.wire.messages.metadata import MetadataRequest

        known: set[int] | None = None
        for number, broker in self.brokers.items():
            if not broker.is_running:
                continue
            try:
                with Connection(
                    HOST, self.plan.broker_ports[number - 1], timeout_s=5
                ) as connection:
                    answer = connection.send(MetadataRequest(topics=[]))
            except Disconnected:
                return set()
            seen = {each.node_id for each in answer.brokers}
            known = seen if known is None else known & seen
        return known or set()

    def wait_until(
        self, is_so: Callable[[], bool], what: str, timeout_s: float = PATIENCE_S
    ) -> None:
        """Wait for something. Raises Failure when it takes too long or a server ends, Stopped when we shall end."""
        deadline = time.monotonic() + timeout_s
        running = [server for server in self.all if server.is_running]
        while not is_so():
            if self._stop.is_made:
                raise Stopped
            self.check_running(running)
            if time.monotonic() > deadline:
                raise Failure(f"not within {timeout_s:.0f} s: {what}", why=self._story())
            time.sleep(_LOOK_AGAIN_S)

    def check_running(self, servers: Sequence[ServerProcess]) -> None:
        """Raises Failure when one of them has ended."""
        for server in servers:
            if not server.is_running:
                raise Failure(
                    f"{server.name} ended by itself",
                    why=_last_words(server.log_tail()) or "it said nothing",
                    hint=f"its log is {server.log_path}",
                )

    def _story(self) -> str:
        said = (f"{server.name}: {_last_words(server.log_tail())}" for server in self.all)
        return "; ".join(said)

    # ---- stopping

    def close(self) -> None:
        """End everything: what needs brokers, then brokers, in good order and all at once, then ZooKeeper."""
        for server in (self._rest, self._registry):
            if server is not None:
                server.signal(signal.SIGTERM)
                server.wait_for_end()
        for broker in self.brokers.values():
            broker.signal(signal.SIGTERM)
        for broker in self.brokers.values():
            broker.wait_for_end()
        if self._zookeeper is not None:
            self._zookeeper.signal(signal.SIGTERM)
            self._zookeeper.wait_for_end()


def _zookeeper_serves(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(b"srvr")
            return b"Mode: " in connection.makefile("rb").read()
    except OSError:
        return False


def _is_healthy(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return b" 200 " in connection.makefile("rb").readline()
    except OSError:
        return False


def _last_words(log: str) -> str:
    """The last thing that was said, with the indented lines that belong to it."""
    words: list[str] = []
    for line in reversed([line for line in log.splitlines() if line.strip()]):
        words.insert(0, line.strip())
        if not line.startswith(" "):
            break
    return " · ".join(words)
