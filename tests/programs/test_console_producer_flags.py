"""What the flags of `console-producer` do to partitions and batches, beside Kafka's own tool."""

import re

import pytest

from tests.programs.conftest import Headrace, Unique, command, run_command
from tests.support import kafka_tools
from tests.support.headrace_process import HeadraceProcess

# Long enough to be worth compressing, and for Java not to put two of them into the smallest buffer.
LINES = b"".join(b"line %d %s\n" % (number, b"and on " * 50) for number in range(8))
_BATCH = re.compile(
    r"^baseOffset: .* count: (?P<count>\d+) .*producerId: (?P<producer>-?\d+) .*compresscodec: (?P<codec>\w+)",
    re.MULTILINE,
)


def offsets(headrace: Headrace, topic: str) -> list[int]:
    printed = headrace("get-offsets", "--topic", topic).stdout
    return [int(line.rpartition(":")[2]) for line in printed.splitlines()]


def test_lines_without_a_key_are_spread_evenly(headrace: Headrace, unique: Unique) -> None:
    topic = unique("spread")
    headrace("topics", "--create", "--topic", topic, "--partitions", "13")
    headrace("console-producer", "--topic", topic, stdin=b"line\n" * 60)
    assert sorted(offsets(headrace, topic)) == [4] * 5 + [5] * 8


def test_a_key_stays_with_its_partition(headrace: Headrace, unique: Unique) -> None:
    topic = unique("keyed")
    headrace("topics", "--create", "--topic", topic, "--partitions", "3")
    headrace(
        *("console-producer", "--topic", topic, "--reader-property", "parse.key=true"),
        stdin=b"same\tline\n" * 60,
    )
    assert sorted(offsets(headrace, topic)) == [0, 0, 60]


def batches(broker: HeadraceProcess, topic: str) -> list[tuple[int, bool, str]]:
    """Records, idempotence and codec of each batch of a topic with one partition."""
    segment = broker.data_dir / f"{topic}-0" / "00000000000000000000.log"
    printed = run_command(command("dump-log", "--files", str(segment))).stdout
    return [
        (int(each["count"]), int(each["producer"]) >= 0, each["codec"])
        for each in _BATCH.finditer(printed)
    ]


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--batch-size", "1", "--producer-property", "batch.size=16384"),
        ("--batch-size", "16384", "--max-partition-memory-bytes", "0"),
        ("--sync", "--compression-codec", "zstd"),
        ("--compression-codec", "--request-required-acks", "1", "--socket-buffer-size", "-1"),
        ("--message-send-max-retries", "0", "--metadata-expiry-ms", "7200000"),
    ],
    ids=" ".join,
)
def test_flags_make_the_same_batches_as_in_kafka(
    headrace: Headrace,
    broker: HeadraceProcess,
    address: str,
    unique: Unique,
    flags: tuple[str, ...],
) -> None:
    ours, theirs = unique("flags"), unique("flags")
    for topic in (ours, theirs):
        headrace("topics", "--create", "--topic", topic, "--partitions", "1")
    headrace("console-producer", *flags, "--topic", ours, stdin=LINES)
    kafka_tools.run(
        *("console-producer", *flags, "--topic", theirs, "--bootstrap-server", address),
        stdin=LINES,
    )
    assert batches(broker, ours) == batches(broker, theirs)
