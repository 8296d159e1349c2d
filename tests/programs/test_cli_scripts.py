"""`bin/` and `config/`: the quickstarts of Kafka's versions run as they are printed, with servers in the background.

Tutorials with a terminal for each server are in `tests/tutorials`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.terminals import Terminals, is_alive, wait_until


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    with Terminals(tmp_path) as terminals:
        yield terminals


def stop(terminals: Terminals, script: str, *, left: int = 0) -> None:
    """Run a script that stops one of the servers; so many go on."""
    ids = terminals.daemon_ids()
    terminals.run(f"bin/{script}")
    wait_until(lambda: sum(map(is_alive, ids)) == left, f"{script} has done its work")


def test_the_quickstart_of_kafka_4(terminals: Terminals) -> None:
    terminals.run(
        'KAFKA_CLUSTER_ID="$(bin/kafka-storage.sh random-uuid)" && '
        "bin/kafka-storage.sh format --standalone -t $KAFKA_CLUSTER_ID -c config/server.properties"
    )
    terminals.run("bin/kafka-server-start.sh -daemon config/server.properties")
    terminals.wait_for_broker("9092")
    terminals.run(
        "bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092"
    )
    described = terminals.run(
        "bin/kafka-topics.sh --describe --topic quickstart-events --bootstrap-server localhost:9092"
    )
    assert "PartitionCount: 1\tReplicationFactor: 1" in described
    terminals.run(
        "bin/kafka-console-producer.sh --topic quickstart-events --bootstrap-server localhost:9092",
        stdin="This is my first event\nThis is my second event\n",
    )
    assert terminals.run(
        "bin/kafka-console-consumer.sh --topic quickstart-events --from-beginning"
        " --bootstrap-server localhost:9092 --max-messages 2"
    ).startswith("This is my first event\nThis is my second event\n")
    stop(terminals, "kafka-server-stop.sh")
    assert terminals.fail("bin/kafka-server-stop.sh") == "No kafka server to stop\n"


def test_the_quickstart_of_kafka_3_without_zookeeper(terminals: Terminals) -> None:
    terminals.run(
        "bin/kafka-storage.sh format -t $(bin/kafka-storage.sh random-uuid) -c config/kraft/server.properties"
    )
    terminals.run("bin/kafka-server-start.sh -daemon config/kraft/server.properties")
    terminals.wait_for_broker("9092")
    terminals.run(
        "bin/kafka-topics.sh --create --topic quickstart-events --bootstrap-server localhost:9092"
    )


def test_the_quickstart_of_kafka_2(terminals: Terminals) -> None:
    terminals.run("bin/zookeeper-server-start.sh -daemon config/zookeeper.properties")
    terminals.wait_for_zookeeper("logs/zookeeper.out")
    terminals.run("bin/kafka-server-start.sh -daemon config/server.properties")
    terminals.wait_for_broker("9092")
    terminals.run(
        "bin/kafka-topics.sh --create --zookeeper localhost:2181 --replication-factor 1 --partitions 1 --topic test"
    )
    assert terminals.run("bin/kafka-topics.sh --list --bootstrap-server localhost:9092") == "test\n"
    terminals.run(
        "bin/kafka-console-producer.sh --broker-list localhost:9092 --topic test",
        stdin="This is a message\nThis is another message\n",
    )
    assert terminals.run(
        "bin/kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic test --from-beginning"
        " --max-messages 2"
    ).startswith("This is a message\nThis is another message\n")
    # How the tutorial finds the broker that it kills. Others may run one from such a file at the same time.
    found = terminals.run("ps ax | grep 'server.properties' | grep -v grep | awk '{print $1}'")
    assert {int(each) for each in found.split()} & set(terminals.daemon_ids())
    stop(terminals, "kafka-server-stop.sh", left=1)
    stop(terminals, "zookeeper-server-stop.sh")


def test_every_script_reaches_its_tool(terminals: Terminals) -> None:
    scripts = sorted((terminals.directory / "bin").glob("kafka-*.sh"))
    for script in scripts:
        if "-server-" not in script.name:
            tool = script.stem.removeprefix("kafka-").replace(
                "preferred-replica-election", "leader-election"
            )
            assert terminals.run(f"bin/{script.name} --help").startswith(f"usage: headrace {tool} ")


def test_a_script_says_what_is_missing(terminals: Terminals) -> None:
    terminals.environment["PATH"] = "/usr/bin:/bin"
    said = terminals.fail("bin/kafka-topics.sh --list").splitlines()
    assert said[0] == "kafka-topics.sh: cannot find headrace"
    assert said[1].startswith("  why: ")
    assert said[2].startswith("  try: make -C ")


def test_a_server_is_told_how_it_is_started(terminals: Terminals) -> None:
    said = terminals.fail("bin/kafka-server-start.sh")
    assert said.startswith("USAGE: bin/kafka-server-start.sh [-daemon] server.properties")


def test_registry_and_rest_proxy_as_confluents_tutorials_start_them(terminals: Terminals) -> None:
    terminals.run(
        "bin/kafka-storage.sh format --standalone -t $(bin/kafka-storage.sh random-uuid) -c config/server.properties"
    )
    terminals.run("bin/kafka-server-start.sh -daemon config/server.properties")
    terminals.wait_for_broker("9092")
    terminals.run(
        "bin/schema-registry-start -daemon config/schema-registry.properties --override listeners=http://127.0.0.1:8081"
    )
    terminals.run(
        "bin/kafka-rest-start -daemon config/kafka-rest.properties --override listeners=http://127.0.0.1:8082"
    )
    logs = terminals.directory / "logs"
    registry, proxy = logs / "schema-registry.out", logs / "kafkaRest.out"
    wait_until(lambda: "schema registry is ready" in registry.read_text(), "the registry is ready")
    wait_until(lambda: "REST proxy is ready" in proxy.read_text(), "the proxy is ready")
    assert terminals.run("curl -s http://127.0.0.1:8081/subjects") == "[]"
    stop(terminals, "schema-registry-stop", left=2)
    stop(terminals, "kafka-rest-stop", left=1)
    for name in ("schema-registry", "kafka-rest"):
        assert terminals.fail(f"bin/{name}-stop") == f"No {name} server to stop\n"
        assert terminals.fail(f"bin/{name}-start").startswith(f"USAGE: bin/{name}-start [-daemon]")
