"""`headrace dev`: a broker, or a ZooKeeper and several, a schema registry and a REST proxy; Ctrl-C stops it all."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace import __version__
from headrace.cli.local.places import command_name
from headrace.cli.shell.command_line import Failure, ToolParser, UsageError, run_tool
from headrace.cli.shell.stopping import StopRequest, stop_signals

if TYPE_CHECKING:
    from headrace.cli.local.local_servers import ClusterPlan, LocalServers
    from headrace.cli.local.port_reservations import PortReservations

FIRST_PORT: Final = 9092
FIRST_HTTP_PORT: Final = 9308
ZOOKEEPER_PORT: Final = 2181
REGISTRY_PORT: Final = 8081
REST_PORT: Final = 8082
_LOOK_AGAIN_S: Final = 0.1


def run(arguments: list[str]) -> int:
    """Run the tool. Returns the exit code."""
    return run_tool(_parser(), arguments, _work, needs_options=False)


def _parser() -> ToolParser:
    parser = ToolParser("dev", "Run what a developer needs, in this terminal, until Ctrl-C.")
    parser.value(
        "brokers",
        "how many brokers (default: 1); with more, a ZooKeeper is started, too",
        type=int,
        default=1,
        metavar="N",
    )
    parser.value(
        "port",
        f"the first broker's port, the others have the next ones (default: {FIRST_PORT}; 0: free ones)",
        type=int,
        default=FIRST_PORT,
    )
    parser.value("data-dir", "where data and logs are kept", metavar="DIR")
    parser.flag("no-schema-registry", "do not start a schema registry")
    parser.flag("no-rest-proxy", "do not start a REST proxy")
    parser.flag("temporary", "keep nothing: data and logs are removed at the end")
    parser.add_argument(
        "--override",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of every broker, in Kafka's names; may be given several times",
    )
    return parser


def _work(options: argparse.Namespace) -> int:
    if options.brokers < 1:
        raise UsageError("--brokers must be 1 or more")
    if options.temporary and options.data_dir:
        raise UsageError("--temporary and --data-dir exclude each other")
    with stop_signals() as stop:
        # A terminal that is closed is a wish to stop, too.
        signal.signal(signal.SIGHUP, lambda _number, _frame: signal.raise_signal(signal.SIGTERM))
        directory = _directory(options)
        try:
            return _serve(options, directory, stop)
        finally:
            if options.temporary:
                shutil.rmtree(directory, ignore_errors=True)


def _directory(options: argparse.Namespace) -> Path:
    if options.temporary:
        return Path(tempfile.mkdtemp(prefix="headrace-dev-"))
    if options.data_dir:
        directory = Path(options.data_dir)
    else:
        from headrace.cli.local.places import default_data_directory

        # A cluster's data are of no use to another number of brokers.
        directory = Path(default_data_directory()).parent / "dev" / f"brokers-{options.brokers}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(
            f"cannot make {directory}",
            why=error.strerror or str(error),
            hint="choose another with --data-dir, or keep nothing with --temporary",
        ) from error
    return directory.resolve()


def _serve(options: argparse.Namespace, directory: Path, stop: StopRequest) -> int:
    from headrace.cli.local.local_servers import LocalServers, Stopped
    from headrace.cli.local.port_reservations import PortReservations

    started_s = time.monotonic()
    with (
        PortReservations() as ports,
        LocalServers(plan_of(options, directory, ports), stop) as servers,
    ):
        plan = servers.plan
        try:
            servers.start()
            for line in welcome(plan, time.monotonic() - started_s, keep=not options.temporary):
                print(line)
            sys.stdout.flush()
            _watch(servers, stop)
        except Stopped:
            pass
        print("\nstopping", flush=True)
    return stop.exit_code


def _watch(servers: LocalServers, stop: StopRequest) -> None:
    while not stop.is_made:
        servers.check_running(servers.all)
        time.sleep(_LOOK_AGAIN_S)


def plan_of(options: argparse.Namespace, directory: Path, ports: PortReservations) -> ClusterPlan:
    """What the options ask for, with reserved ports. Raises Failure where a broker's port is taken."""
    from headrace.cli.local.local_servers import ClusterPlan

    count = options.brokers
    broker_ports = [_broker_port(options.port, number, ports) for number in range(count)]

    def usual_or_free(usual: int) -> int:
        """A port that nobody has to know by heart."""
        return ports.take_or_free(usual) if options.port else ports.free()

    settings = dict(_pair(each) for each in options.override)
    zookeeper_port = None
    if count > 1:
        zookeeper_port = usual_or_free(ZOOKEEPER_PORT)
        replicas = str(min(3, count))
        settings = {
            "default.replication.factor": replicas,
            "offsets.topic.replication.factor": replicas,
            "min.insync.replicas": str(min(2, count)),
        } | settings
    http_ports = [usual_or_free(FIRST_HTTP_PORT + number) for number in range(count)]
    registry_port = None
    if not options.no_schema_registry and has_services():
        registry_port = usual_or_free(REGISTRY_PORT)
    rest_port = None
    if not options.no_rest_proxy and has_services():
        rest_port = usual_or_free(REST_PORT)
    return ClusterPlan(
        directory=directory,
        broker_ports=broker_ports,
        http_ports=http_ports,
        zookeeper_port=zookeeper_port,
        registry_port=registry_port,
        rest_port=rest_port,
        settings={"group.initial.rebalance.delay.ms": "0"} | settings,
    )


def has_services() -> bool:
    """Whether the extra `services` is installed, which the HTTP programs need."""
    return find_spec("starlette") is not None and find_spec("uvicorn") is not None


def _broker_port(first: int, number: int, ports: PortReservations) -> int:
    from headrace.cli.local.port_reservations import HOST

    if not first:
        return ports.free()
    port = first + number
    if not ports.take(port):
        raise Failure(
            f"cannot listen on {HOST}:{port}",
            why="another program listens there, perhaps another 'headrace dev'",
            hint="stop it, or take free ports with 'headrace dev --port 0'",
        )
    return port


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--override {text}: a setting is NAME=VALUE")
    return name.strip(), value.strip()


def welcome(plan: ClusterPlan, seconds: float, *, keep: bool) -> list[str]:
    """What is there now, and what to do with it."""
    from headrace.cli.local.port_reservations import HOST

    count = len(plan.broker_ports)
    addresses = ",".join(f"{HOST}:{port}" for port in plan.broker_ports)
    what = "one broker" if count == 1 else f"ZooKeeper and {count} brokers"
    fate = "delete it to start afresh" if keep else "removed at the end"
    rows = [("Kafka", addresses)]
    if plan.zookeeper_port is not None:
        rows.append(("ZooKeeper", f"{HOST}:{plan.zookeeper_port}"))
    if plan.registry_port is not None:
        rows.append(("schemas", f"http://{HOST}:{plan.registry_port}"))
    if plan.rest_port is not None:
        rows.append(("REST", f"http://{HOST}:{plan.rest_port}"))
    rows.append(("metrics", ", ".join(f"http://{HOST}:{port}/metrics" for port in plan.http_ports)))
    rows.append(("logs", str(plan.directory / "logs")))
    server = f"{HOST}:{plan.broker_ports[0]}"
    me = command_name()
    return [
        f"headrace {__version__} · {what} · data in {plan.directory} ({fate})",
        "",
        *(f"  {name:<10} {value}" for name, value in rows),
        "",
        f"ready in {seconds:.1f} s. Try, in another terminal:",
        f"  {me} topics --bootstrap-server {server} --create --topic orders --partitions 3",
        f"  {me} top --bootstrap-server {server}",
        "Ctrl-C stops everything.",
    ]
