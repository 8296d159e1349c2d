"""Kafka's own shell tools against the broker: what they print is what their users know."""

import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.clients.confluent import Confluent
from tests.conformance.conftest import MakeTopic
from tests.conformance.samples import BASE_TIMESTAMP_MS, CODECS, Record, numbered
from tests.support import kafka_tools
from tests.support.broker import BrokerUnderTest
from tests.support.kafka_tools import Output

Unique = Callable[[str], str]
Run = Callable[..., Output]


@pytest.fixture
def run(address: str) -> Run:
    """Run a tool against the broker."""

    def run_tool(tool: str, *arguments: str, stdin: bytes = b"", succeed: bool = True) -> Output:
        bootstrap = ("--bootstrap-server", address)
        return kafka_tools.run(tool, *bootstrap, *arguments, stdin=stdin, succeed=succeed)

    return run_tool


def test_topics_are_created_listed_described_altered_and_deleted(
    broker: BrokerUnderTest, run: Run, unique: Unique
) -> None:
    topic, replicas = unique("tool-topic"), len(broker.ports)
    created = run(
        *("topics", "--create", "--topic", topic, "--partitions", "2"),
        *("--replication-factor", str(replicas), "--config", "retention.ms=1000"),
    )
    assert f"Created topic {topic}.\n" in created.stdout
    assert topic in run("topics", "--list").stdout.splitlines()
    run("topics", "--alter", "--topic", topic, "--partitions", "3")
    described = run("topics", "--describe", "--topic", topic).stdout
    head, *partitions = described.splitlines()
    assert re.match(
        rf"Topic: {topic}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: {replicas}\tConfigs: ",
        head,
    )
    assert "retention.ms=1000" in head
    for number, line in enumerate(partitions):
        columns = dict(
            column.split(": ", 1) for column in line.strip().split("\t") if ": " in column
        )
        assert columns["Partition"] == str(number)
        assert columns["Leader"] == columns["Replicas"].split(",")[0]
        for column in ("Replicas", "Isr"):
            assert sorted(columns[column].split(",")) == sorted(map(str, broker.ports))
    assert len(partitions) == 3
    again = run("topics", "--create", "--topic", topic, succeed=False)
    assert again.exit_code == 1
    assert f"Topic '{topic}' already exists." in again.stdout
    run("topics", "--delete", "--topic", topic)


def test_an_unknown_topic_is_named(run: Run) -> None:
    described = run("topics", "--describe", "--topic", "never-created", succeed=False)
    assert described.exit_code == 1
    assert "Topic 'never-created' does not exist as expected" in described.stdout


@pytest.mark.parametrize("codec", CODECS)
def test_console_producer_and_consumer(run: Run, make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic(f"console-{codec}")
    lines = "h1:v1,h2:v2\tkey one\tvalue one\nh3:v3\tNULL\tvalue two\nh4:v4\tkey three\tNULL\n"
    run(
        *("console-producer", "--topic", topic, "--compression-codec", codec),
        *("--reader-property", "parse.key=true", "--reader-property", "parse.headers=true"),
        *("--reader-property", "null.marker=NULL"),
        stdin=lines.encode(),
    )
    consumed = run(
        *("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "3"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
        *("--formatter-property", "print.offset=true", "--formatter-property", "null.literal=NULL"),
    )
    expected = "".join(f"Offset:{n}\t{line}\n" for n, line in enumerate(lines.splitlines()))
    assert consumed.stdout == expected
    assert "Processed a total of 3 messages" in consumed.stderr


def test_console_consumer_prints_time_and_partition(
    run: Run, address: str, make_topic: MakeTopic
) -> None:
    topic = make_topic("console-time")
    Confluent().produce(address, topic, 0, [Record(value=b"v")], codec="none")
    consumed = run(
        *("console-consumer", "--topic", topic, "--partition", "0", "--offset", "0"),
        *("--max-messages", "1", "--formatter-property", "print.timestamp=true"),
        *("--formatter-property", "print.partition=true"),
    )
    assert consumed.stdout == f"CreateTime:{BASE_TIMESTAMP_MS}\tPartition:0\tv\n"


def test_consumer_groups_are_described_reset_and_deleted(
    broker: BrokerUnderTest, run: Run, address: str, make_topic: MakeTopic, unique: Unique
) -> None:
    topic, group = make_topic("tool-group-topic"), unique("tool-group")
    Confluent().produce(address, topic, 0, numbered(10), codec="none")
    Confluent().consume_in_group(address, topic, group, 4)
    assert group in run("consumer-groups", "--list").stdout.splitlines()
    described = run("consumer-groups", "--describe", "--group", group)
    assert f"Consumer group '{group}' has no active members." in described.stderr
    row = described.stdout.strip().splitlines()[-1].split()
    assert row == [group, topic, "0", "4", "10", "6", "-", "-", "-"]
    state = run("consumer-groups", "--describe", "--group", group, "--state").stdout
    found = re.search(rf"{group}\s+127\.0\.0\.1:(\d+)\s+\((\d+)\)\s+\S*\s*Empty\s+0", state)
    assert found is not None, state
    assert (int(found[2]), int(found[1])) in broker.ports.items()
    reset = run(
        *("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic),
        *("--to-offset", "2", "--execute"),
    )
    assert reset.stdout.strip().splitlines()[-1].split() == [group, topic, "0", "2"]
    assert [found.offset for found in Confluent().consume_in_group(address, topic, group, 1)] == [2]
    deleted = run("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert f"Request succeeded for deleting offsets from group {group}." in deleted.stdout
    gone = run("consumer-groups", "--delete", "--group", group)
    assert f"Deletion of requested consumer groups ('{group}') was successful." in gone.stdout
    unknown = run("consumer-groups", "--describe", "--group", group, succeed=False)
    assert f"Group {group} not found." in unknown.stdout


def test_configs_are_altered_and_described(run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic("tool-configs")
    changed = run(
        *("configs", "--alter", "--entity-type", "topics", "--entity-name", topic),
        *("--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]"),
    )
    assert changed.stdout == f"Completed updating config for topic {topic}.\n"
    described = run("configs", "--describe", "--topic", topic).stdout
    assert f"Dynamic configs for topic {topic} are:" in described
    assert (
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}"
        in described.splitlines()
    )
    assert "cleanup.policy=compact,delete sensitive=false" in described
    everything = run("configs", "--describe", "--topic", topic, "--all").stdout
    assert f"All configs for topic {topic} are:" in everything
    assert "DEFAULT_CONFIG:log.segment.bytes=1073741824" in everything
    wrong = run(
        *("configs", "--alter", "--topic", topic, "--add-config", "retention.ms=soon"),
        succeed=False,
    )
    assert wrong.exit_code == 1
    assert "retention.ms" in wrong.stderr + wrong.stdout


def test_offsets_are_got_and_records_deleted(
    run: Run, address: str, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic("tool-offsets", partitions=2)
    Confluent().produce(address, topic, 0, numbered(10), codec="none")
    assert run("get-offsets", "--topic", topic).stdout == f"{topic}:0:10\n{topic}:1:0\n"
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 7}], "version": 1}
    (tmp_path / "offsets.json").write_text(json.dumps(wanted))
    deleted = run("delete-records", "--offset-json-file", str(tmp_path / "offsets.json"))
    assert f"partition: {topic}-0\tlow_watermark: 7" in deleted.stdout
    earliest = run("get-offsets", "--topic", topic, "--time", "earliest")
    assert earliest.stdout == f"{topic}:0:7\n{topic}:1:0\n"
    by_time = run("get-offsets", "--topic", topic, "--time", str(BASE_TIMESTAMP_MS + 1))
    assert by_time.stdout == ""


def test_log_dirs_are_described(broker: BrokerUnderTest, run: Run, make_topic: MakeTopic) -> None:
    topic = make_topic("tool-log-dirs")
    described = run("log-dirs", "--describe", "--topic-list", topic).stdout
    brokers = json.loads(described.splitlines()[-1])["brokers"]
    assert sorted(each["broker"] for each in brokers) == sorted(broker.ports)
    for each in brokers:
        [log_dir] = each["logDirs"]
        assert log_dir["error"] is None
        assert log_dir["partitions"] == [
            {"partition": f"{topic}-0", "size": 0, "offsetLag": 0, "isFuture": False}
        ]


def test_api_versions_are_shown(broker: BrokerUnderTest, run: Run) -> None:
    shown = run("broker-api-versions").stdout
    for number, port in broker.ports.items():
        assert f"127.0.0.1:{port} (id: {number} rack: null" in shown
    assert "UNSUPPORTED" not in shown.partition("Produce(0)")[2].partition("\n")[0]
    for line in ("Produce(0): 0 to 13 [usable: 13]", "Fetch(1): 4 to 18 [usable: 18]"):
        assert line in shown


def test_what_the_verifiable_producer_sent_the_verifiable_consumer_gets(
    address: str, make_topic: MakeTopic, unique: Unique
) -> None:
    topic = make_topic("verifiable", partitions=2)
    produced = kafka_tools.run(
        *("verifiable-producer", "--bootstrap-server", address, "--topic", topic),
        *("--max-messages", "200", "--throughput", "-1"),
    )
    sent = {
        (event["partition"], event["offset"], event["value"])
        for event in map(json.loads, produced.stdout.splitlines())
        if event["name"] == "producer_send_success"
    }
    assert len(sent) == 200
    command = kafka_tools.command(
        *("verifiable-consumer", "--bootstrap-server", address, "--topic", topic),
        *("--group-id", unique("verifiable"), "--max-messages", "200", "--verbose"),
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as consumer:
        received = set()
        committed: dict[int, int] = {}
        assert consumer.stdout is not None
        for line in consumer.stdout:
            event = json.loads(line)
            if event["name"] == "record_data":
                received.add((event["partition"], event["offset"], event["value"]))
            if event["name"] == "offsets_committed":
                committed |= {tp["partition"]: tp["offset"] for tp in event["offsets"]}
                if sum(committed.values()) == 200:
                    consumer.send_signal(signal.SIGTERM)
    assert received == sent


def test_the_performance_tools_run_to_their_end(
    run: Run, address: str, make_topic: MakeTopic
) -> None:
    topic = make_topic("performance")
    produced = kafka_tools.run(
        *("producer-perf-test", "--topic", topic, "--num-records", "5000"),
        *("--record-size", "100", "--throughput", "-1", "--bootstrap-server", address),
    )
    assert produced.stdout.strip().splitlines()[-1].startswith("5000 records sent, ")
    consumed = run("consumer-perf-test", "--topic", topic, "--num-records", "5000")
    header, row = consumed.stdout.strip().splitlines()[-2:]
    assert header.startswith("start.time, end.time, data.consumed.in.MB")
    assert row.split(", ")[4] == "5000"
