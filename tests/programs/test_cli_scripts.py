"""`bin/` and `config/`: Kafka's tutorials run as they are printed, from a directory that holds the two.

Only ports and directories are other ones, so that several runs can share a machine.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.server_process import free_port, serves_kafka

REPOSITORY = Path(__file__).parents[2]
PATIENCE_S = 40
PORTS = ("2181", "9092", "9093", "9094")
DIRECTORIES = ("/tmp/zookeeper", "/tmp/kafka-logs", "/tmp/kraft-combined-logs")  # the printed ones


class Shell:
    """Runs the lines of a tutorial in a directory with `bin` and `config`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = {port: str(free_port()) for port in PORTS}
        for name in ("bin", "config"):
            shutil.copytree(REPOSITORY / name, directory / name)
        for file in (directory / "config").rglob("*.properties"):
            file.write_text(self.moved(file.read_text()))
        with (directory / "config" / "server.properties").open("a") as settings:
            settings.write(
                self.moved("\nport=9092\n")
            )  # what the printed file leaves to the default
        self.environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def moved(self, text: str) -> str:
        """The text, with this test's own ports and directories."""
        for old, new in self.ports.items():
            text = text.replace(old, new)
        for old in DIRECTORIES:
            text = text.replace(old, str(self.directory / "data" / old.removeprefix("/tmp/")))
        return text

    def __call__(self, line: str, stdin: str = "", succeed: bool = True) -> str:
        done = subprocess.run(
            ["sh", "-c", self.moved(line)],
            cwd=self.directory,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        if succeed:
            assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def wait_for_broker(self, port: str) -> None:
        self.wait_until(lambda: serves_kafka(int(self.ports[port])))

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)

    def logs(self) -> str:
        return "\n".join(file.read_text() for file in (self.directory / "logs").glob("*.out"))

    def server_ids(self) -> list[int]:
        return [int(file.read_text()) for file in (self.directory / "logs").glob("*.pid")]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    for process_id in shell.server_ids():
        if is_alive(process_id):
            os.kill(process_id, signal.SIGKILL)


def is_alive(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_quickstart_of_kafka_4(shell: Shell) -> None:
    shell(
        'KAFKA_CLUSTER_ID="$(bin/kafka-storage.sh random-uuid)" && '
        "bin/kafka-storage.sh format --standalone -t $KAFKA_CLUSTER_ID -c config/server.properties"
    )
    shell("bin/kafka-server-start.sh -daemon config/server.properties")
    shell.wait_for_broker("9092")
    shell(
        "bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092"
    )
    described = shell(
        "bin/kafka-topics.sh --describe --topic quickstart-events --bootstrap-server localhost:9092"
    )
    assert "PartitionCount: 1\tReplicationFactor: 1" in described
    shell(
        "bin/kafka-console-producer.sh --topic quickstart-events --bootstrap-server localhost:9092",
        stdin="This is my first event\nThis is my second event\n",
    )
    assert shell(
        "bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning"
        " --bootstrap-server localhost:9092 --max-messages 2"
    ).startswith("This is my first event\nThis is my second event\n")
    ids = shell.server_ids()
    shell("bin/kafka-server-stop.sh")
    shell.wait_until(lambda: not any(map(is_alive, ids)))
    assert shell("bin/kafka-server-stop.sh", succeed=False) == "No kafka server to stop\n"


def test_the_quickstart_of_kafka_3_without_zookeeper(shell: Shell) -> None:
    shell(
        "bin/kafka-storage.sh format -t $(bin/kafka-storage.sh random-uuid) -c config/kraft/server.properties"
    )
    shell("bin/kafka-server-start.sh -daemon config/kraft/server.properties")
    shell.wait_for_broker("9092")
    shell(
        "bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092"
    )


def test_the_quickstart_of_kafka_2_with_three_brokers(shell: Shell) -> None:
    shell("bin/zookeeper-server-start.sh -daemon config/zookeeper.properties")
    # Who dials a port of this range before anybody listens may reach himself.
    shell.wait_until(lambda: "binding to port" in shell.logs())
    shell("bin/kafka-server-start.sh -daemon config/server.properties")
    shell.wait_for_broker("9092")
    shell(
        "bin/kafka-topics.sh --create --zookeeper localhost:2181 --replication-factor 1 --partitions 1 --topic test"
    )
    assert shell("bin/kafka-topics.sh --list --bootstrap-server localhost:9092") == "test\n"
    shell(
        "bin/kafka-console-producer.sh --broker-list localhost:9092 --topic test",
        stdin="This is a message\nThis is another message\n",
    )
    read = "bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --from-beginning"
    assert shell(f"{read} --topic test --max-messages 2").startswith(
        "This is a message\nThis is another message\n"
    )
    for number in (1, 2):
        copy = f"config/server-{number}.properties"
        shell(f"cp config/server.properties {copy}")
        edited = shell.directory / copy
        text = edited.read_text()
        for old, new in (
            ("broker.id=0", f"broker.id={number}"),
            (
                shell.moved("#listeners=PLAINTEXT://:9092"),
                f"listeners=PLAINTEXT://:909{2 + number}",
            ),
            (shell.moved("/tmp/kafka-logs"), f"/tmp/kafka-logs-{number}"),
        ):
            assert old in text
            text = text.replace(old, shell.moved(new))
        edited.write_text(text)
        shell(f"bin/kafka-server-start.sh -daemon {copy}")
    shell.wait_for_broker("9093")
    shell.wait_for_broker("9094")
    shell(
        "bin/kafka-topics.sh --create --bootstrap-server localhost:9092 --replication-factor 3"
        " --partitions 1 --topic my-replicated-topic"
    )
    shell(
        "bin/kafka-console-producer.sh --broker-list localhost:9092 --topic my-replicated-topic",
        stdin="my test message 1\nmy test message 2\n",
    )
    shell("kill -9 $(ps ax | grep 'server-1.properties' | grep -v grep | awk '{print $1}')")
    described = (
        "bin/kafka-topics.sh --describe --zookeeper localhost:2181 --topic my-replicated-topic"
    )
    shell.wait_until(lambda: "Leader: 1" not in shell(described))
    assert shell(f"{read} --topic my-replicated-topic --max-messages 2").startswith(
        "my test message 1\nmy test message 2\n"
    )
    ids = shell.server_ids()
    shell("bin/kafka-server-stop.sh")
    shell.wait_until(lambda: sum(map(is_alive, ids)) == 1)
    shell("bin/zookeeper-server-stop.sh")
    shell.wait_until(lambda: not any(map(is_alive, ids)))


def test_every_script_reaches_its_tool(shell: Shell) -> None:
    scripts = sorted((shell.directory / "bin").glob("kafka-*.sh"))
    for script in scripts:
        if "-server-" not in script.name:
            tool = script.stem.removeprefix("kafka-").replace(
                "preferred-replica-election", "leader-election"
            )
            assert shell(f"bin/{script.name} --help").startswith(f"usage: headrace {tool} ")


def test_a_script_says_what_is_missing(shell: Shell) -> None:
    shell.environment["PATH"] = "/usr/bin:/bin"
    said = shell("bin/kafka-topics.sh --list", succeed=False).splitlines()
    assert said[0] == "kafka-topics.sh: cannot find headrace"
    assert said[1].startswith("  why: ")
    assert said[2].startswith("  try: make -C ")


def test_a_server_is_told_how_it_is_started(shell: Shell) -> None:
    said = shell("bin/kafka-server-start.sh", succeed=False)
    assert said.startswith("USAGE: bin/kafka-server-start.sh [-daemon] server.properties")
