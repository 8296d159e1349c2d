"""A member of a group is killed: its partitions go to the others, and no message is skipped, also where none had come before."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.programs.conftest import Headrace, Unique, command

PARTITIONS = 13
PATIENCE_S = 60
SETTINGS = ("auto.commit.interval.ms=500", "session.timeout.ms=6000")

Words = Callable[[str, str], list[str]]


class Row(NamedTuple):
    """What `consumer-groups --describe` says of one partition."""

    offset: str
    owner: str


class Members:
    """Consumers of one group; what each prints is in a file."""

    def __init__(self, words: list[str], directory: Path) -> None:
        self._words = words
        self._directory = directory
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        with self.output(len(self.processes)).open("wb") as output:
            self.processes.append(subprocess.Popen(self._words, stdout=output))

    def output(self, number: int) -> Path:
        return self._directory / f"consumer-{number}.txt"

    def printed(self) -> str:
        return "".join(self.output(number).read_text() for number in range(len(self.processes)))


@contextmanager
def members(words: list[str], directory: Path) -> Iterator[Members]:
    found = Members(words, directory)
    try:
        yield found
    finally:
        for process in found.processes:
            process.kill()
            process.wait()


def describe(headrace: Headrace, group: str) -> list[Row]:
    output = headrace("consumer-groups", "--describe", "--group", group).stdout
    rows = [line.split() for line in output.splitlines() if line.startswith(group)]
    return [Row(row[3], row[6]) for row in rows]


def wait_until(is_so: Callable[[], bool], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)


def console(topic: str, group: str) -> list[str]:
    properties = [word for each in SETTINGS for word in ("--command-property", each)]
    return ["console-consumer", "--topic", topic, "--group", group, *properties]


def console_cooperative(topic: str, group: str) -> list[str]:
    strategy = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
    words = console(topic, group)
    return [*words, "--command-property", f"partition.assignment.strategy={strategy}"]


def verifiable(config: Path, topic: str, group: str) -> list[str]:
    return [
        *("verifiable-consumer", "--topic", topic, "--group-id", group, "--enable-autocommit"),
        *("--verbose", "--reset-policy", "latest", "--session-timeout", "6000"),
        *("--command-config", str(config)),
    ]


@pytest.mark.parametrize("tool", ["console", "console-cooperative", "verifiable"])
def test_nothing_is_skipped(
    headrace: Headrace, address: str, unique: Unique, tmp_path: Path, tool: str
) -> None:
    topic, group = unique("failover"), unique("failover-group")
    headrace("topics", "--create", "--topic", topic, "--partitions", str(PARTITIONS))
    config = tmp_path / "consumer.properties"
    config.write_text("auto.commit.interval.ms=500\n")
    words = {
        "console": console(topic, group),
        "console-cooperative": console_cooperative(topic, group),
        "verifiable": verifiable(config, topic, group),
    }[tool]

    def write(messages: list[str]) -> None:
        headrace(
            *("console-producer", "--topic", topic, "--reader-property", "parse.key=true"),
            stdin="".join(f"key {each}\t{each}\n" for each in messages).encode(),
        )

    with members(command(*words, "--bootstrap-server", address), tmp_path) as consumers:
        for _ in range(3):
            consumers.start()
        wait_until(
            lambda: len({row.owner for row in describe(headrace, group)} - {"-"}) == 3,
            lambda: describe(headrace, group),
        )
        # No record has come: what is committed are positions.
        wait_until(
            lambda: [row.offset for row in describe(headrace, group)] == ["0"] * PARTITIONS,
            lambda: describe(headrace, group),
        )
        first = [f"first-{number}." for number in range(7)]
        write(first)
        wait_until(lambda: all(each in consumers.printed() for each in first), consumers.printed)

        consumers.processes[0].kill()
        second = [f"second-{number}." for number in range(60)]
        write(second)
        wait_until(
            lambda: all(each in consumers.printed() for each in second),
            lambda: [each for each in second if each not in consumers.printed()],
        )
