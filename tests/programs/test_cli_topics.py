"""`headrace topics` against a broker."""

import re
import signal
import subprocess

from tests.programs.conftest import Headrace, Unique, command, parsed, run_command

COLLIDES = "WARNING: Due to limitations in metric names"


def test_a_topic_lives_and_dies(headrace: Headrace, unique: Unique) -> None:
    name = unique("life")
    created = headrace(
        *("topics", "--create", "--topic", name, "--partitions", "2"),
        *("--replication-factor", "1", "--config", "retention.ms=100000"),
    )
    assert created.stdout == f"Created topic {name}.\n"
    assert name in headrace("topics", "--list").stdout.splitlines()
    headrace("topics", "--alter", "--topic", name, "--partitions", "3")
    head, *partitions = headrace("topics", "--describe", "--topic", name).stdout.splitlines()
    assert re.match(
        rf"Topic: {name}\tTopicId: \S{{22}}\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: ",
        head,
    )
    assert "retention.ms=100000" in head
    assert partitions == [
        f"\tTopic: {name}\tPartition: {number}\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
        for number in range(3)
    ]
    headrace("topics", "--delete", "--topic", name)
    assert name not in headrace("topics", "--list").stdout.splitlines()


def test_json(headrace: Headrace, topic: str) -> None:
    assert topic in parsed(headrace("topics", "--list", "--output", "json"))
    [described] = parsed(headrace("topics", "--describe", "--topic", topic, "--output", "json"))
    assert (described["topic"], described["partitionCount"]) == (topic, 2)
    assert [each["leader"] for each in described["partitions"]] == [1, 1]


def test_a_topic_is_found_by_its_id(headrace: Headrace, topic: str) -> None:
    [described] = parsed(headrace("topics", "--describe", "--topic", topic, "--output", "json"))
    by_id = headrace("topics", "--describe", "--topic-id", described["topicId"])
    assert by_id.stdout.startswith(f"Topic: {topic}\t")


def test_replicas_may_be_assigned(headrace: Headrace, unique: Unique) -> None:
    name = unique("assigned")
    headrace("topics", "--create", "--topic", name, "--replica-assignment", "1,1,1")
    [described] = parsed(headrace("topics", "--describe", "--topic", name, "--output", "json"))
    assert described["partitionCount"] == 3


def test_existing_topics(headrace: Headrace, topic: str) -> None:
    again = headrace("topics", "--create", "--topic", topic, succeed=False)
    assert again.exit_code == 1
    told = f"Error while executing topic command : Topic '{topic}' already exists.\n"
    assert again.stdout == told
    headrace("topics", "--create", "--topic", topic, "--if-not-exists")


def test_missing_topics_get_the_nearest_name(headrace: Headrace, topic: str) -> None:
    for action in ("--describe", "--delete"):
        missing = headrace("topics", action, "--topic", topic + "x", succeed=False)
        assert missing.exit_code == 1
        expected = f"Topic '{topic}x' does not exist as expected"
        assert missing.stdout == f"Error while executing topic command : {expected}\n"
        assert f"did you mean '{topic}'?" in missing.stderr
        headrace("topics", action, "--topic", topic + "x", "--if-exists")


def test_the_brokers_words_are_passed_on(headrace: Headrace, unique: Unique) -> None:
    wrong = headrace(
        *("topics", "--create", "--topic", unique("wrong"), "--config", "retention.mss=1"),
        succeed=False,
    )
    assert wrong.exit_code == 1
    assert "retention.mss" in wrong.stdout
    collides = headrace("topics", "--create", "--topic", unique("with.dot"))
    assert collides.stdout.startswith(COLLIDES)


def test_filters_leave_only_what_is_wrong(headrace: Headrace, topic: str) -> None:
    for name in ("under-replicated", "unavailable", "under-min-isr"):
        assert (
            headrace("topics", "--describe", "--topic", topic, f"--{name}-partitions").stdout == ""
        )
    at_min = headrace("topics", "--describe", "--topic", topic, "--at-min-isr-partitions")
    assert len(at_min.stdout.splitlines()) == 2


def test_mistakes_in_options_are_told_in_kafkas_words(headrace: Headrace) -> None:
    for arguments, told in (
        (
            [],
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete",
        ),
        (["--list", "--create"], "Command must include exactly one action"),
        (["--create"], 'Missing required argument "[topic]"'),
        (["--alter", "--topic", "t"], 'Missing required argument "[partitions]"'),
        (
            ["--list", "--partitions", "3"],
            'Option "[partitions]" can\'t be used with option "[list]"',
        ),
        (["--lst"], "lst is not a recognized option; did you mean '--list'?"),
    ):
        output = headrace("topics", *arguments, succeed=False)
        assert output.exit_code == 1
        assert told in output.stderr
        assert output.stdout == ""


def test_nobody_there() -> None:
    output = run_command(command("topics", "--list", "--bootstrap-server", "127.0.0.1:1"))
    assert output.exit_code == 1
    assert output.stderr.splitlines()[:3] == [
        "no broker at 127.0.0.1:1: Connection refused; waiting up to 15 s, in case it is starting",
        "headrace topics: cannot reach a broker at 127.0.0.1:1",
        "  why: Connection refused",
    ]


def test_ctrl_c_leaves_no_trace() -> None:
    words = command("topics", "--list", "--bootstrap-server", "127.0.0.1:1")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
        assert tool.stderr is not None
        assert b"waiting up to 15 s" in tool.stderr.readline()
        tool.send_signal(signal.SIGINT)
        output = tool.communicate(timeout=10)
    assert (tool.returncode, output) == (130, (b"", b""))


def test_a_reader_that_goes_away_leaves_no_trace(address: str) -> None:
    words = command(
        "configs", "--describe", "--broker", "1", "--all", "--bootstrap-server", address
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        assert tool.stderr is not None
        tool.stdout.close()
        assert tool.stderr.read() == b""
