"""ZooKeeper is away: /healthz, the controller's metric, `headrace doctor` and `headrace top` show it, until it is back."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from tests.support.cluster_process import ClusterProcess
from tests.support.server_process import free_port

AWAY = "the coordination store (zookeeper.connect) has not answered since"


def tool(cluster: ClusterProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace.cli.main", *arguments]
    bootstrap = f"127.0.0.1:{cluster.brokers[1].port}"
    return subprocess.run(
        [*command, "--bootstrap-server", bootstrap],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_is_shown(tmp_path: Path) -> None:
    http_port = free_port()
    listener = f"http://127.0.0.1:{http_port}"
    properties = {"headrace.http.listeners": listener}

    def reasons() -> list[str]:
        with urlopen(f"{listener}/healthz") as page:
            return list(json.loads(page.read())["reasons"])

    def active_controllers() -> str:
        with urlopen(f"{listener}/metrics") as page:
            lines = page.read().decode().splitlines()
        name = "kafka_controller_kafkacontroller_activecontrollercount "
        (value,) = [line.removeprefix(name) for line in lines if line.startswith(name)]
        return str(value)

    with ClusterProcess(tmp_path / "cluster", brokers=1, properties=properties) as cluster:
        assert (reasons(), active_controllers()) == ([], "1")
        cluster.zookeepers[0].kill()
        cluster.wait_for(lambda: "take no writes" in "".join(reasons()), "the lease is over")
        (reason,) = reasons()
        assert reason.startswith(AWAY)
        assert active_controllers() == "0"
        doctor = tool(cluster, "doctor")
        assert AWAY in doctor.stdout
        assert doctor.returncode == 1
        assert AWAY in tool(cluster, "top", "--once").stdout
        assert "take no writes until it answers" in cluster.brokers[1].log_tail()

        cluster.zookeepers[0].start()
        cluster.wait_for(lambda: not reasons(), "ZooKeeper is back")
        cluster.wait_for(lambda: active_controllers() == "1", "the controller is back")
        assert AWAY not in tool(cluster, "doctor").stdout
