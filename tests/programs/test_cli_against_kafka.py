"""Our tools and Kafka's own print the same about the same cluster. What may differ is written down in docs/tools/."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record
from tests.programs.conftest import Headrace, Unique, command, run_command
from tests.support import kafka_tools
from tests.support.broker import Broker
from tests.support.kafka_tools import Output
from tests.unit.cli.dump import internal_record_samples
from tests.unit.cli.dump.internal_record_samples import Sample

GOLDEN = Path(__file__).parents[1] / "golden" / "kafka_log_dir"


class Both:
    """Runs a tool of ours and Kafka's with the same arguments."""

    def __init__(self, headrace: Headrace, address: str) -> None:
        self._headrace = headrace
        self._address = address

    def __call__(self, tool: str, *arguments: str) -> tuple[Output, Output]:
        theirs = kafka_tools.run(
            tool, *arguments, "--bootstrap-server", self._address, succeed=False
        )
        ours = self._headrace(tool, *arguments, succeed=False)
        assert ours.exit_code == theirs.exit_code, (ours, theirs)
        return ours, theirs


@pytest.fixture(scope="module")
def both(headrace: Headrace, address: str) -> Both:
    return Both(headrace, address)


@pytest.fixture(scope="module")
def orders(headrace: Headrace, unique: Unique) -> str:
    """A topic with settings of its own and records in both partitions."""
    name = unique("orders")
    headrace(
        *("topics", "--create", "--topic", name, "--partitions", "2"),
        *("--config", "retention.ms=100000000", "--config", "max.message.bytes=2000000"),
    )
    lines = b"".join(b"key %d\tvalue %d\n" % (n % 7, n) for n in range(100))
    headrace(
        *("console-producer", "--topic", name, "--reader-property", "parse.key=true"), stdin=lines
    )
    return name


@pytest.fixture(scope="module")
def left(headrace: Headrace, orders: str, unique: Unique) -> str:
    """A group whose members have left."""
    name = unique("left")
    reading = ("console-consumer", "--topic", orders, "--from-beginning", "--max-messages", "60")
    headrace(*reading, "--group", name)
    return name


@pytest.fixture(scope="module")
def busy(address: str, orders: str, unique: Unique) -> Iterator[str]:
    """A group with a member that has read everything."""
    name = unique("busy")
    words = command(
        *("console-consumer", "--bootstrap-server", address, "--topic", orders),
        *("--from-beginning", "--group", name, "--command-property", "enable.auto.commit=false"),
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as consumer:
        assert consumer.stdout is not None
        for _ in range(100):
            consumer.stdout.readline()
        yield name
        consumer.terminate()


def with_sorted_configs(text: str) -> list[str]:
    """Kafka prints a topic's configs in the order of a hash table."""
    lines = []
    for line in text.splitlines():
        head, title, configs = line.partition("\tConfigs: ")
        lines.append(head + title + ",".join(sorted(configs.split(","))))
    return lines


@pytest.mark.parametrize(
    "arguments",
    [
        ["--list", "--exclude-internal"],
        ["--describe", "--topic", "{orders}"],
        ["--describe", "--topic", "{orders}", "--at-min-isr-partitions"],
        ["--describe", "--topic", "never-made"],
        ["--create", "--topic", "{orders}"],
        ["--create", "--topic", "x", "--partitions", "0"],
        ["--create", "--topic", "bad name"],
        ["--alter", "--topic", "{orders}", "--partitions", "1"],
        ["--delete", "--topic", "never-made"],
    ],
    ids=" ".join,
)
def test_topics(both: Both, orders: str, arguments: list[str]) -> None:
    ours, theirs = both("topics", *(word.format(orders=orders) for word in arguments))
    assert with_sorted_configs(ours.stdout) == with_sorted_configs(theirs.stdout)


@pytest.mark.parametrize(
    "view", [[], ["--verbose"], ["--members"], ["--members", "--verbose"], ["--state", "--verbose"]]
)
@pytest.mark.parametrize("kind", ["left", "busy"])
def test_groups(both: Both, request: pytest.FixtureRequest, kind: str, view: list[str]) -> None:
    group = request.getfixturevalue(kind)
    ours, theirs = both("consumer-groups", "--describe", "--group", group, *view)
    assert ours.stdout == theirs.stdout
    assert ours.stderr == theirs.stderr


def test_the_list_of_groups(both: Both, left: str) -> None:
    ours, theirs = both("consumer-groups", "--list", "--state", "empty", "--type")
    # Kafka's order is that of a hash table.
    assert sorted(ours.stdout.splitlines()) == sorted(theirs.stdout.splitlines())


@pytest.mark.parametrize(
    "scenario",
    [
        ["--to-earliest", "--dry-run"],
        ["--shift-by", "-5", "--dry-run", "--export"],
        ["--to-datetime", "2100-01-01T00:00:00.000", "--dry-run"],
    ],
)
def test_resets(both: Both, left: str, orders: str, scenario: list[str]) -> None:
    arguments = ("--reset-offsets", "--group", left, "--topic", orders, *scenario)
    ours, theirs = both("consumer-groups", *arguments)
    # Kafka's order is that of a hash table.
    assert sorted(ours.stdout.splitlines()) == sorted(theirs.stdout.splitlines())


@pytest.mark.parametrize(
    "arguments", [[], ["--time", "earliest"], ["--time", "-3"], ["--partitions", "1"]]
)
def test_offsets(both: Both, orders: str, arguments: list[str]) -> None:
    ours, theirs = both("get-offsets", "--topic", orders, *arguments)
    assert ours.stdout == theirs.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["--describe", "--topic", "{orders}"],
        ["--describe", "--topic", "{orders}", "--all"],
        ["--describe", "--broker", "1", "--all"],
        ["--describe", "--entity-type", "brokers"],
        ["--describe", "--topic", "never-made"],
        ["--alter", "--topic", "{orders}", "--add-config", "retention.ms=100000001"],
    ],
    ids=" ".join,
)
def test_configs(both: Both, orders: str, arguments: list[str]) -> None:
    ours, theirs = both("configs", *(word.format(orders=orders) for word in arguments))
    assert ours.stdout == theirs.stdout


def plain(text: str) -> Any:
    """The JSON line of log-dirs, in an order that is nobody's."""
    found = json.loads(text.splitlines()[-1])
    for broker in found["brokers"]:
        for log_dir in broker["logDirs"]:
            log_dir["partitions"].sort(key=lambda each: each["partition"])
    return found


def test_log_dirs(both: Both, orders: str) -> None:
    ours, theirs = both("log-dirs", "--describe", "--topic-list", orders)
    assert ours.stdout.splitlines()[:-1] == theirs.stdout.splitlines()[:-1]
    assert plain(ours.stdout) == plain(theirs.stdout)


def test_api_versions(both: Both) -> None:
    ours, theirs = both("broker-api-versions")
    assert ours.stdout == theirs.stdout


def test_records(both: Both, orders: str) -> None:
    names = ("timestamp", "partition", "offset", "headers", "key")
    printed = [word for name in names for word in ("--formatter-property", f"print.{name}=true")]
    ours, theirs = both(
        *("console-consumer", "--topic", orders, "--partition", "0", "--offset", "earliest"),
        *("--max-messages", "20", *printed),
    )
    assert ours.stdout == theirs.stdout


def test_files(broker: Broker, orders: str) -> None:
    ours_and_samples = [
        *(broker.data_dir / f"{orders}-0").glob("0*.*"),
        *(path for path in GOLDEN.glob("*/0*") if path.suffix != ".metadata"),
    ]
    files = ",".join(map(str, ours_and_samples))
    theirs = kafka_tools.run("dump-log", "--files", files, "--print-data-log", succeed=False)
    ours = run_command(command("dump-log", "--files", files, "--print-data-log"))
    assert ours == theirs


@pytest.mark.parametrize(
    ("option", "samples"),
    [
        ("--offsets-decoder", internal_record_samples.OFFSETS),
        ("--transaction-log-decoder", internal_record_samples.TRANSACTIONS),
    ],
)
def test_records_of_internal_topics(tmp_path: Path, option: str, samples: list[Sample]) -> None:
    records = [
        Record(offset=offset, timestamp=1000, key=key, value=value, headers=())
        for offset, (key, value) in enumerate(samples)
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(build_batch(records))
    theirs = kafka_tools.run("dump-log", "--files", str(path), option)
    assert run_command(command("dump-log", "--files", str(path), option)) == theirs
