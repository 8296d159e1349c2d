"""`headrace console-producer` and `console-consumer` against a broker, with new names and old ones."""

import re
import signal
import subprocess
from typing import IO

import pytest

from tests.programs.conftest import Headrace, Unique, command

LINES = b"h1:v1,h2:v2\tkey one\tvalue one\nh3:v3\tNULL\tvalue two\nh4:v4\tkey three\tNULL\n"
READER = ("parse.key=true", "parse.headers=true", "null.marker=NULL")


def options(name: str, *values: str) -> list[str]:
    return [word for value in values for word in (name, value)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_written_can_be_read(headrace: Headrace, unique: Unique, codec: str) -> None:
    topic = unique("console")
    headrace("topics", "--create", "--topic", topic, "--partitions", "1")
    headrace(
        *("console-producer", "--topic", topic, "--compression-codec", codec),
        *options("--reader-property", *READER),
        stdin=LINES,
    )
    printed = ("print.key=true", "print.headers=true", "print.offset=true", "null.literal=NULL")
    consumed = headrace(
        *("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "3"),
        *options("--formatter-property", *printed),
    )
    expected = "".join(
        f"Offset:{n}\t{line}\n" for n, line in enumerate(LINES.decode().splitlines())
    )
    assert consumed.stdout == expected
    assert consumed.stderr.endswith("Processed a total of 3 messages\n")


def test_old_names_work_and_are_remarked_upon(address: str, topic: str) -> None:
    produced = subprocess.run(
        command(
            *("console-producer", "--broker-list", address, "--topic", topic),
            *("--property", "parse.key=true", "--producer-property", "linger.ms=0"),
        ),
        input=b"k\tv\n",
        capture_output=True,
        check=True,
    )
    assert b"Option --property is deprecated" in produced.stderr
    consumed = subprocess.run(
        command(
            *("console-consumer", "--bootstrap-server", address, "--whitelist", topic),
            *("--property", "print.key=true", "--consumer-property", "auto.offset.reset=earliest"),
            *("--max-messages", "1"),
        ),
        capture_output=True,
        check=True,
    )
    assert consumed.stdout == b"k\tv\n"
    assert b"Use --formatter-property instead." in consumed.stderr


def test_a_partition_from_an_offset_until_nothing_comes(headrace: Headrace, topic: str) -> None:
    headrace(
        *("console-producer", "--topic", topic, "--sync", "--request-required-acks", "1"),
        *("--reader-property", "parse.key=true"),
        stdin=b"".join(b"same\t%d\n" % n for n in range(5)),
    )
    texts = []
    for partition in ("0", "1"):
        consumed = headrace(
            *("console-consumer", "--topic", topic, "--partition", partition, "--offset", "2"),
            *("--timeout-ms", "1000", "--formatter-property", "print.timestamp=true"),
        )
        texts.append(re.sub(r"CreateTime:\d+\t", "", consumed.stdout))
    # One key, one partition; the other has no offset 2 and begins at its end.
    assert sorted(texts) == ["", "2\n3\n4\n"]


def test_a_group_goes_on_where_it_stopped(headrace: Headrace, topic: str, unique: Unique) -> None:
    headrace("console-producer", "--topic", topic, stdin=b"a\nb\nc\nd\n")
    group = unique("console-group")
    reading = ("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "2")
    first = headrace(*reading, "--group", group).stdout.split()
    second = headrace(*reading, "--consumer-property", f"group.id={group}").stdout.split()
    assert sorted(first + second) == ["a", "b", "c", "d"]


def test_a_line_that_does_not_fit_is_named(headrace: Headrace, topic: str) -> None:
    output = headrace(
        *("console-producer", "--topic", topic, "--reader-property", "parse.key=true"),
        stdin=b"k\tv\noops\n",
        succeed=False,
    )
    assert output.exit_code == 1
    assert "No key separator found on line number 2: 'oops'" in output.stderr


def test_settings_the_client_does_not_know(headrace: Headrace, topic: str) -> None:
    output = headrace(
        *("console-producer", "--topic", topic, "--command-property", "no.such=1"), succeed=False
    )
    assert output.exit_code == 1
    assert 'No such configuration property: "no.such"' in output.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Exactly one of the following arguments is required: [topic], [include]"),
        (["--topic", "t", "--offset", "1"], "The partition is required when offset is specified."),
        (
            ["--topic", "t", "--partition", "0", "--group", "g"],
            "Options group and partition cannot be specified together.",
        ),
        (
            ["--topic", "t", "--group", "a", "--command-property", "group.id=b"],
            "Detected group ids: 'a', 'b'",
        ),
        (
            ["--topic", "t", "--from-beginning", "--command-property", "auto.offset.reset=latest"],
            "please remove one option",
        ),
        (["--topic", "t", "--formatter", "com.me.Mine"], "the formatter com.me.Mine is not known"),
    ],
)
def test_mistakes_are_told(headrace: Headrace, arguments: list[str], told: str) -> None:
    output = headrace("console-consumer", *arguments, succeed=False)
    assert output.exit_code == 1
    assert told in output.stderr


def first_line(stream: IO[bytes] | None) -> bytes:
    assert stream is not None
    return stream.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_consumer_ends_in_good_order(
    headrace: Headrace, address: str, topic: str, unique: Unique, number: signal.Signals
) -> None:
    headrace("console-producer", "--topic", topic, stdin=b"one\n")
    group = unique("stopped")
    words = command(
        *("console-consumer", "--bootstrap-server", address, "--topic", topic),
        *("--from-beginning", "--group", group),
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consumer:
        assert first_line(consumer.stdout) == b"one\n"
        consumer.send_signal(number)
        _, err = consumer.communicate(timeout=20)
    assert consumer.returncode == 128 + number
    assert err == b"Processed a total of 1 messages\n"
    # It left the group, and what it had read is committed.
    described = headrace("consumer-groups", "--describe", "--group", group)
    assert f"Consumer group '{group}' has no active members." in described.stderr
    assert sum(int(row.split()[5]) for row in described.stdout.splitlines()[2:]) == 0


def test_a_consumer_whose_reader_has_gone(headrace: Headrace, address: str, topic: str) -> None:
    headrace("console-producer", "--topic", topic, stdin=b"x\n" * 5000)
    words = command(
        *("console-consumer", "--bootstrap-server", address, "--topic", topic, "--from-beginning")
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as consumer:
        assert first_line(consumer.stdout) == b"x\n"
        assert consumer.stdout is not None
        consumer.stdout.close()
        headrace("console-producer", "--topic", topic, stdin=b"x\n" * 20000)
        assert consumer.stderr is not None
        err = consumer.stderr.read()
    assert consumer.returncode == 0
    assert b"Unable to write to standard out, closing consumer." in err
    assert b"Traceback" not in err


def test_a_producer_that_is_interrupted_has_written_what_it_read(
    headrace: Headrace, address: str, topic: str
) -> None:
    words = command("console-producer", "--bootstrap-server", address, "--topic", topic)
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as producer:
        assert producer.stdin is not None
        producer.stdin.write(b"kept\n")
        producer.stdin.flush()
        consumed = headrace(
            *("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "1")
        )
        producer.send_signal(signal.SIGINT)
        _, err = producer.communicate(timeout=20)
    assert consumed.stdout == "kept\n"
    assert (producer.returncode, err) == (130, b"")
