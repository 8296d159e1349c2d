"""`headrace dev`: everything with one command, and nothing of it left after Ctrl-C."""

import argparse
import os
import re
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.cli.local.port_reservations import PortReservations
from headrace.cli.shell.command_line import Failure, UsageError
from headrace.cli.tools import dev
from headrace.cli.tools.dev import plan_of, welcome
from tests.programs.conftest import command, run_command
from tests.support.interrupting import MARK, interrupt, marked

KAFKA = re.compile(r"Kafka +(\S+)")


def options(brokers: int = 1, port: int = 0, override: tuple[str, ...] = ()) -> argparse.Namespace:
    return argparse.Namespace(
        brokers=brokers,
        port=port,
        override=list(override),
        no_schema_registry=False,
        no_rest_proxy=False,
    )


@contextmanager
def a_taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[PortReservations]:
    with PortReservations(tmp_path) as reservations:
        yield reservations


def test_one_broker_needs_no_zookeeper(ports: PortReservations) -> None:
    plan = plan_of(options(), Path("/d"), ports)
    assert (len(plan.broker_ports), len(plan.http_ports), plan.zookeeper_port) == (1, 1, None)


def test_three_brokers_are_a_cluster_whose_topics_are_replicated(ports: PortReservations) -> None:
    plan = plan_of(options(brokers=3, override=("min.insync.replicas=1",)), Path("/d"), ports)
    used = [*plan.broker_ports, *plan.http_ports, plan.zookeeper_port]
    assert len(set(used)) == 7
    assert plan.settings["default.replication.factor"] == "3"
    assert plan.settings["min.insync.replicas"] == "1"


def test_a_port_that_is_taken_is_told_with_a_way_out(ports: PortReservations) -> None:
    with a_taken_port() as port, pytest.raises(Failure, match="cannot listen") as failure:
        plan_of(options(port=port), Path("/d"), ports)
    assert "--port 0" in failure.value.hint


def test_two_runs_that_start_together_get_different_ports(
    ports: PortReservations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PortReservations() as unused:
        broker, other_broker, http, registry = (unused.free() for _ in range(4))
    monkeypatch.setattr(dev, "FIRST_HTTP_PORT", http)
    monkeypatch.setattr(dev, "REGISTRY_PORT", registry)
    first = plan_of(options(port=broker), Path("/d"), ports)
    with PortReservations(tmp_path) as other_ports:
        second = plan_of(options(port=other_broker), Path("/d"), other_ports)
        assert (first.http_ports, first.registry_port) == ([http], registry)
        assert second.http_ports != [http]
        assert second.registry_port != registry
        with pytest.raises(Failure, match=f"cannot listen on 127.0.0.1:{broker}"):
            plan_of(options(port=broker), Path("/d"), other_ports)


def test_a_setting_must_be_a_pair(ports: PortReservations) -> None:
    with pytest.raises(UsageError, match="NAME=VALUE"):
        plan_of(options(override=("num.partitions",)), Path("/d"), ports)


def test_the_welcome_has_every_address_and_two_commands(ports: PortReservations) -> None:
    plan = plan_of(options(brokers=3), Path("/d"), ports)
    text = "\n".join(welcome(plan, 1.0, keep=True))
    for port in (
        *plan.broker_ports,
        *plan.http_ports,
        plan.zookeeper_port,
        plan.registry_port,
        plan.rest_port,
    ):
        assert f"127.0.0.1:{port}" in text
    assert text.count("--bootstrap-server") == 2
    assert "delete it to start afresh" in text


class Visitor:
    """Does something with the cluster once it serves; then it is time for Ctrl-C."""

    def __init__(self, visit: Callable[[str], None]) -> None:
        self._visit = visit

    def __call__(self, text: str) -> bool:
        if "Ctrl-C stops everything" not in text:
            return False
        found = KAFKA.search(text)
        assert found is not None
        self._visit(found[1])
        return True


def create_topic(address: str) -> None:
    words = command("topics", "--create", "--topic", "kept", "--bootstrap-server", address)
    assert run_command(words).exit_code == 0


def find_topic(address: str) -> None:
    words = command("topics", "--list", "--bootstrap-server", address)
    assert "kept" in run_command(words).stdout.splitlines()


@pytest.mark.parametrize("brokers", [1, 3])
def test_it_serves_until_ctrl_c_and_its_data_stay(tmp_path: Path, brokers: int) -> None:
    data = tmp_path / "data"
    words = command("dev", "--brokers", str(brokers), "--port", "0", "--data-dir", str(data))
    for visit in (create_topic, find_topic):
        ended = interrupt(words, Visitor(visit))
        ended.check()
        assert ended.seconds_to_end < 20


def test_two_that_start_together_both_serve(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            command("dev", "--port", "0", "--data-dir", str(tmp_path / str(number))),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]
    for process in processes:
        with process:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if "Ctrl-C stops everything" in line:
                    process.terminate()
            assert any("Ctrl-C stops everything" in line for line in lines), "".join(lines)
        assert process.returncode == 143


def test_where_it_is_killed_its_servers_end_too(tmp_path: Path) -> None:
    words = command("dev", "--port", "0", "--data-dir", str(tmp_path))
    mark = uuid.uuid4().hex
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, MARK: mark}
    ) as process:
        assert process.stdout is not None
        assert any("Ctrl-C stops everything" in line for line in process.stdout)
        assert len([line for line in marked(mark) if "server-start" in line]) >= 1
        os.kill(process.pid, signal.SIGKILL)
    deadline = time.monotonic() + 20
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked(mark) == []


def test_a_server_that_ends_by_itself_is_told(tmp_path: Path) -> None:
    output = run_command(
        command("dev", "--port", "0", "--data-dir", str(tmp_path), "--override", "num.partitions=x")
    )
    assert output.exit_code == 1
    assert "broker 1 ended by itself" in output.stderr
    assert "num.partitions" in output.stderr
