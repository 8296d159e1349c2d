"""`reassign-partitions` and `leader-election` on a cluster of three brokers, and beside Kafka's own."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from headrace.testing.embedded_cluster import EmbeddedCluster
from tests.programs.conftest import Unique, command, parsed, run_command
from tests.support import kafka_tools
from tests.support.kafka_tools import Output

PATIENCE_S = 30
THROTTLES = (
    "leader.replication.throttled.replicas",
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as cluster:
        yield cluster


class Ours:
    """Our tools on the cluster."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.address = cluster.bootstrap_servers

    def __call__(self, tool: str, *arguments: str, succeed: bool = True) -> Output:
        words = command(tool, *arguments, "--bootstrap-server", self.address)
        output = run_command(words)
        assert "Traceback" not in output.stderr, output.stderr
        if succeed:
            assert output.exit_code == 0, output
        return output

    def replicas(self, topic: str) -> list[list[int]]:
        [described] = parsed(self("topics", "--describe", "--topic", topic, "--output", "json"))
        return [each["replicas"] for each in described["partitions"]]

    def leader(self, topic: str) -> int:
        [described] = parsed(self("topics", "--describe", "--topic", topic, "--output", "json"))
        leader: int = described["partitions"][0]["leader"]
        return leader


@pytest.fixture(scope="module")
def ours(cluster: EmbeddedCluster) -> Ours:
    return Ours(cluster)


@pytest.fixture
def topic(ours: Ours, unique: Unique) -> str:
    """Two partitions, each on brokers 1 and 2."""
    name = unique("moved")
    ours("topics", "--create", "--topic", name, "--replica-assignment", "1:2,2:1")
    return name


WritePlan = Callable[..., str]


@pytest.fixture
def plan(tmp_path: Path, topic: str) -> WritePlan:
    """Writes a plan for partitions of the topic; the path of the file."""

    def write(*replicas: list[int], **more: Any) -> str:
        path = tmp_path / "plan.json"
        partitions = [
            {"topic": topic, "partition": index, "replicas": some, **more}
            for index, some in enumerate(replicas)
        ]
        path.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return str(path)

    return write


def execute(ours: Ours, path: str, *more: str) -> Output:
    return ours("reassign-partitions", "--execute", "--reassignment-json-file", path, *more)


def verify(ours: Ours, path: str, *more: str) -> Output:
    return ours("reassign-partitions", "--verify", "--reassignment-json-file", path, *more)


def test_a_plan_is_proposed_carried_out_and_verified(
    ours: Ours, topic: str, tmp_path: Path
) -> None:
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    lines = ours(
        *("reassign-partitions", "--generate", "--broker-list", "3"),
        *("--topics-to-move-json-file", str(topics)),
        succeed=False,
    ).stderr.splitlines()
    assert lines[0].endswith("Replication factor: 2 larger than available brokers: 1.")
    assert lines[2] == "  try: name more of these brokers: 1,2,3"
    lines = ours(
        *("reassign-partitions", "--generate", "--broker-list", "1,3"),
        *("--topics-to-move-json-file", str(topics)),
    ).stdout.splitlines()
    assert lines[0] == "Current partition replica assignment"
    assert [each["replicas"] for each in json.loads(lines[1])["partitions"]] == [[1, 2], [2, 1]]
    assert lines[2:4] == ["", "Proposed partition reassignment configuration"]
    proposed = json.loads(lines[4])
    assert [sorted(each["replicas"]) for each in proposed["partitions"]] == [[1, 3], [1, 3]]
    path = tmp_path / "plan.json"
    path.write_text(lines[4])
    started = execute(ours, str(path)).stdout.splitlines()
    assert started[-1] == f"Successfully started partition reassignments for {topic}-0,{topic}-1"
    verified = verify(ours, str(path), "--wait").stdout.splitlines()
    assert verified[:3] == [
        "Status of partition reassignment:",
        f"Reassignment of partition {topic}-0 is completed.",
        f"Reassignment of partition {topic}-1 is completed.",
    ]
    assert ours.replicas(topic) == [each["replicas"] for each in proposed["partitions"]]


def fill(ours: Ours, topic: str) -> None:
    """Megabytes in each partition, of which a throttled move takes longer than a test."""
    producer = Producer({"bootstrap.servers": ours.address})
    for partition in (0, 1):
        for _ in range(60):
            producer.produce(topic, bytes(100_000), partition=partition)
    assert producer.flush(PATIENCE_S) == 0


def test_a_throttled_move_is_listed_can_be_cancelled_and_leaves_nothing(
    ours: Ours, topic: str, plan: WritePlan
) -> None:
    fill(ours, topic)
    path = plan([3, 2], [1, 3])
    output = execute(ours, path, "--throttle", "1000").stdout
    assert "The inter-broker throttle limit was set to 1000 B/s\n" in output
    config = ours("configs", "--describe", "--topic", topic).stdout
    assert f"{THROTTLES[0]}=0:1,0:2,1:1,1:2 " in config
    assert f"{THROTTLES[1]}=0:3,1:3 " in config
    listed = ours("reassign-partitions", "--list").stdout.splitlines()
    assert listed[0] == "Current partition reassignments:"
    assert listed[1] == f"{topic}-0: replicas: 3,2,1. adding: 3. removing: 1."
    as_json = parsed(ours("reassign-partitions", "--list", "--output", "json"))
    assert as_json[1] == {
        "topic": topic,
        "partition": 1,
        "replicas": [1, 3, 2],
        "addingReplicas": [3],
        "removingReplicas": [2],
    }
    told = verify(ours, path).stdout
    assert f"Reassignment of partition {topic}-0 is still in progress.\n" in told
    assert "Clearing" not in told
    refused = ours(
        "reassign-partitions", "--execute", "--reassignment-json-file", path, succeed=False
    )
    assert refused.exit_code == 1
    assert "Use --additional to override this" in refused.stderr
    execute(ours, path, "--additional", "--throttle", "2000")
    cancelled = ours("reassign-partitions", "--cancel", "--reassignment-json-file", path).stdout
    assert cancelled.startswith(
        f"Successfully cancelled partition reassignments for: {topic}-0,{topic}-1\n"
    )
    assert ours("reassign-partitions", "--list").stdout == "No partition reassignments found.\n"
    assert [sorted(each) for each in ours.replicas(topic)] == [[1, 2], [1, 2]]
    told = ours("configs", "--describe", "--topic", topic).stdout
    told += ours("configs", "--describe", "--broker", "1").stdout
    assert not [name for name in THROTTLES if name in told]


def test_what_cannot_be_carried_out_is_refused(ours: Ours, topic: str, plan: WritePlan) -> None:
    start = ("reassign-partitions", "--execute", "--reassignment-json-file")
    assert "Unknown broker id 9" in ours(*start, plan([1, 9]), succeed=False).stderr
    strict = (*start, plan([1, 2, 3]), "--disallow-replication-factor-change")
    output = ours(*strict, succeed=False)
    assert output.exit_code == 1
    assert f"{topic}-0: " in output.stderr


def test_a_topic_that_is_not_there_gets_the_nearest_name(
    ours: Ours, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "topics.json"
    path.write_text(json.dumps({"topics": [{"topic": topic + "x"}]}))
    output = ours(
        *("reassign-partitions", "--generate", "--broker-list", "1"),
        *("--topics-to-move-json-file", str(path)),
        succeed=False,
    )
    assert output.stderr == (
        f"headrace reassign-partitions: Topic {topic}x not found.\n  try: did you mean '{topic}'?\n"
    )


def test_the_preferred_leader_is_elected(ours: Ours, topic: str, plan: WritePlan) -> None:
    one = ("--topic", topic, "--partition", "0")
    said = ours("leader-election", "--election-type", "PREFERRED", *one).stdout
    assert said == f"Valid replica already elected for partitions {topic}-0\n"
    execute(ours, plan([2, 1]))
    verify(ours, plan([2, 1]), "--wait")
    assert ours.leader(topic) == 1
    said = ours("leader-election", "--election-type", "preferred", *one).stdout
    assert said == f"Successfully completed leader election (PREFERRED) for partitions {topic}-0\n"
    assert ours.leader(topic) == 2


def without_choices(text: str) -> list[str]:
    """Kafka's words without its choices at random, its stack traces, and our line for its missing line's end."""
    lines = [re.sub(r"(?<=Proposed partition reassignment configuration\n).*", "…", text)]
    text = lines[0].replace("moves are active.\n", "moves are active.")
    lines = [line for line in text.splitlines() if not line.startswith("\tat ")]
    return [re.sub(r"(?<= for partitions ).*", _in_order, line) for line in lines]


def _in_order(names: re.Match[str]) -> str:
    return ", ".join(sorted(names[0].split(", ")))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("reassign-partitions", ["--list"]),
        ("reassign-partitions", ["--execute", "--reassignment-json-file", "{same}"]),
        ("reassign-partitions", ["--verify", "--reassignment-json-file", "{same}"]),
        ("reassign-partitions", ["--verify", "--reassignment-json-file", "{other}"]),
        (
            "reassign-partitions",
            ["--verify", "--reassignment-json-file", "{other}", "--preserve-throttles"],
        ),
        ("reassign-partitions", ["--cancel", "--reassignment-json-file", "{other}"]),
        (
            "reassign-partitions",
            ["--generate", "--topics-to-move-json-file", "{topics}", "--broker-list", "1,2"],
        ),
        (
            "leader-election",
            ["--election-type", "preferred", "--topic", "{topic}", "--partition", "0"],
        ),
        ("leader-election", ["--election-type", "preferred", "--path-to-json-file", "{same}"]),
        ("leader-election", ["--election-type", "unclean", "--all-topic-partitions"]),
    ],
    ids=lambda words: words if isinstance(words, str) else " ".join(words),
)
def test_the_same_as_kafkas(
    ours: Ours, topic: str, tmp_path: Path, tool: str, arguments: list[str]
) -> None:
    def write(name: str, document: object) -> str:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document))
        return str(path)

    def plan_of(*replicas: list[int]) -> object:
        partitions = [
            {"topic": topic, "partition": index, "replicas": some}
            for index, some in enumerate(replicas)
        ]
        return {"version": 1, "partitions": partitions}

    names = {
        "topic": topic,
        "same": write("same", plan_of([1, 2], [2, 1])),
        "other": write("other", plan_of([3, 2])),
        "topics": write("topics", {"topics": [{"topic": topic}]}),
    }
    words = [word.format(**names) for word in arguments]
    theirs = kafka_tools.run(tool, *words, "--bootstrap-server", ours.address, succeed=False)
    output = ours(tool, *words, succeed=False)
    assert output.exit_code == theirs.exit_code, (output, theirs)
    assert without_choices(output.stdout) == without_choices(theirs.stdout)


def test_replicas_move_between_directories(unique: Unique, tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    with EmbeddedCluster({"log.dirs": f"{first},{second}"}, size=1) as cluster:
        ours = Ours(cluster)
        ours("topics", "--create", "--topic", "a", "--replication-factor", "1")
        here = first if Path(first, "a-0").is_dir() else second
        there = second if here == first else first
        path = tmp_path / "plan.json"
        entry = {"topic": "a", "partition": 0, "replicas": [1], "log_dirs": [there]}
        path.write_text(json.dumps({"partitions": [entry]}))
        told = verify(ours, str(path)).stdout
        assert (
            f"Partition a-0 on broker 1 is not being moved from log dir {here} to {there}.\n"
            in told
        )
        told = execute(ours, str(path), "--replica-alter-log-dirs-throttle", "1000000").stdout
        assert "The replica-alter-dir throttle limit was set to 1000000 B/s\n" in told
        assert (
            f"Successfully started moving log directory to {there} for replica a-0 with broker 1"
            in told
        )
        deadline = time.monotonic() + PATIENCE_S
        while "Reassignment of replica a-0-1 completed successfully." not in told:
            assert time.monotonic() < deadline, told
            told = verify(ours, str(path), "--wait").stdout
        assert Path(there, "a-0").is_dir()
