"""The tools against a cluster of three brokers: through ZooKeeper, through any broker, with one of them gone."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs.conftest import command, parsed, run_command
from tests.support import kafka_tools
from tests.support.cluster_process import ClusterProcess
from tests.support.kafka_tools import Output

CHROOT = "/tools"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    with ClusterProcess(tmp_path_factory.mktemp("cluster"), chroot=CHROOT) as cluster:
        yield cluster


def run(cluster: ClusterProcess, tool: str, *arguments: str, stdin: bytes = b"") -> Output:
    """Run one of our tools, which is given one broker only."""
    first = f"127.0.0.1:{cluster.brokers[1].port}"
    output = run_command(command(tool, *arguments, "--bootstrap-server", first), stdin)
    assert output.exit_code == 0, output
    return output


def described(cluster: ClusterProcess, topic: str) -> list[dict[str, Any]]:
    [found] = parsed(run(cluster, "topics", "--describe", "--topic", topic, "--output", "json"))
    partitions: list[dict[str, Any]] = found["partitions"]
    return partitions


def test_zookeeper_names_the_brokers(cluster: ClusterProcess) -> None:
    zookeeper = f"127.0.0.1:{cluster.zookeepers[0].port}{CHROOT}"
    created = run_command(
        command(
            *("topics", "--create", "--zookeeper", zookeeper, "--topic", "by-zookeeper"),
            *("--replication-factor", "3", "--partitions", "13"),
        )
    )
    assert (created.exit_code, created.stdout) == (0, "Created topic by-zookeeper.\n"), created
    partitions = described(cluster, "by-zookeeper")
    assert len(partitions) == 13
    assert all(sorted(each["isr"]) == [1, 2, 3] for each in partitions)
    nobody = f"127.0.0.1:{cluster.zookeepers[0].port}/elsewhere"
    missing = run_command(command("topics", "--list", "--zookeeper", nobody))
    assert missing.exit_code == 1
    assert "knows no living broker" in missing.stderr


def test_no_zookeeper_there() -> None:
    output = run_command(command("topics", "--list", "--zookeeper", "127.0.0.1:1"))
    assert output.exit_code == 1
    assert output.stderr.startswith("headrace topics: cannot reach a ZooKeeper at 127.0.0.1:1\n")
    assert "Traceback" not in output.stderr


def test_every_broker_is_asked_for_its_own(cluster: ClusterProcess, tmp_path: Path) -> None:
    run(cluster, "topics", "--create", "--topic", "spread", "--partitions", "6")
    lines = b"".join(b"%d\t%d\n" % (n, n) for n in range(300))
    run(
        *(cluster, "console-producer", "--topic", "spread", "--reader-property", "parse.key=true"),
        stdin=lines,
    )
    offsets = parsed(run(cluster, "get-offsets", "--topic", "spread", "--output", "json"))
    assert sum(each["offset"] for each in offsets) == 300
    groups = [f"reader-{n}" for n in range(4)]  # their coordinators are spread, too
    for group in groups:
        run(
            *(cluster, "console-consumer", "--topic", "spread", "--from-beginning"),
            *("--max-messages", "300", "--group", group),
        )
    assert set(groups) <= set(run(cluster, "consumer-groups", "--list").stdout.splitlines())
    for group in groups:
        [found] = parsed(
            run(cluster, "consumer-groups", "--describe", "--group", group, "--output", "json")
        )
        assert {each["lag"] for each in found["partitions"]} == {0}
    dirs = json.loads(
        run(cluster, "log-dirs", "--describe", "--topic-list", "spread").stdout.splitlines()[-1]
    )
    assert [len(each["logDirs"][0]["partitions"]) for each in dirs["brokers"]] == [6, 6, 6]
    file = tmp_path / "offsets.json"
    everything = [{"topic": "spread", "partition": n, "offset": -1} for n in range(6)]
    file.write_text(json.dumps({"partitions": everything}))
    deleted = run(cluster, "delete-records", "--offset-json-file", str(file)).stdout
    assert deleted.count("low_watermark") == 6
    assert "error" not in deleted
    for broker in ("1", "2", "3"):
        own = run(cluster, "configs", "--describe", "--broker", broker, "--all").stdout
        assert f"  broker.id={broker} " in own


def test_one_broker_is_gone(cluster: ClusterProcess) -> None:
    run(cluster, "topics", "--create", "--topic", "failsafe", "--partitions", "13")
    cluster.wait_for_full_isr("failsafe")
    # Groups need three brokers once, when the topic of their offsets is created.
    run(
        *(cluster, "consumer-groups", "--reset-offsets", "--group", "any", "--topic", "failsafe"),
        *("--to-earliest", "--execute"),
    )
    cluster.brokers[3].kill()
    try:
        cluster.wait_for(
            lambda: all(3 not in each["isr"] for each in described(cluster, "failsafe")),
            "the killed broker is out of every ISR",
        )
        shown = run(cluster, "topics", "--describe", "--topic", "failsafe").stdout.splitlines()
        theirs = kafka_tools.run(
            *("topics", "--describe", "--topic", "failsafe"),
            *("--bootstrap-server", f"127.0.0.1:{cluster.brokers[1].port}"),
        )
        assert shown[1:] == theirs.stdout.splitlines()[1:]
        assert len(shown) == 14
        for line in shown[1:]:
            assert re.search(r"\tLeader: [12]\t.*\tIsr: (1,2|2,1)\t", line)
        short = run(
            *(cluster, "topics", "--describe", "--topic", "failsafe"),
            "--under-replicated-partitions",
        )
        assert short.stdout.splitlines() == shown[1:]
        run(cluster, "console-producer", "--topic", "failsafe", stdin=b"still here\n")
        read = run(
            *(cluster, "console-consumer", "--topic", "failsafe", "--from-beginning"),
            *("--max-messages", "1"),
        )
        assert read.stdout == "still here\n"
        # A bootstrap server that is down is no obstacle while another one is up.
        servers = f"127.0.0.1:{cluster.brokers[3].port},127.0.0.1:{cluster.brokers[2].port}"
        listed = run_command(command("topics", "--list", "--bootstrap-server", servers))
        assert "failsafe" in listed.stdout.splitlines()
    finally:
        cluster.brokers[3].start()
    cluster.wait_for_full_isr("failsafe")
