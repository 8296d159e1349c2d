"""The broker that programs run against (chosen by --broker), and our tools run as a user would run them."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pytest

from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import Broker, bootstrap
from tests.support.headrace_process import HeadraceProcess
from tests.support.kafka_tools import Output

Unique = Callable[[str], str]

# The tools that Kafka has, too.
KAFKA_TOOLS = (
    *("topics", "console-producer", "console-consumer", "consumer-groups", "configs"),
    *("get-offsets", "delete-records", "log-dirs", "dump-log", "broker-api-versions", "cluster"),
    *("producer-perf-test", "consumer-perf-test", "verifiable-producer", "verifiable-consumer"),
    *("reassign-partitions", "leader-election", "storage", "transactions"),
)


class Headrace(Protocol):
    """Runs `headrace TOOL --bootstrap-server … ARGUMENTS` to its end."""

    def __call__(
        self, tool: str, *arguments: str, stdin: bytes = b"", succeed: bool = True
    ) -> Output: ...


def command(tool: str, *arguments: str) -> list[str]:
    """The command line of one of our tools."""
    return [sys.executable, "-m", "headrace.cli.main", tool, *arguments]


def run_command(words: list[str], stdin: bytes = b"", timeout_s: float = 60) -> Output:
    done = subprocess.run(
        words,
        input=stdin,
        capture_output=True,
        timeout=timeout_s,
        env={**os.environ, "TZ": "UTC"},
        check=False,
    )
    return Output(
        stdout=done.stdout.decode(), stderr=done.stderr.decode(), exit_code=done.returncode
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = metafunc.config.getoption("--broker") or ["headrace"]
    if "broker" in metafunc.fixturenames:
        metafunc.parametrize("broker", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """One broker for the whole run: topics and groups must be a test's own."""
    if request.param == ApacheKafka.name:
        yield request.getfixturevalue("apache_kafka")
    else:
        with HeadraceProcess(tmp_path_factory.mktemp("headrace")) as process:
            yield process


@pytest.fixture(scope="session")
def address(broker: Broker) -> str:
    return bootstrap(broker)


@pytest.fixture(scope="session")
def headrace(address: str) -> Headrace:
    def run(tool: str, *arguments: str, stdin: bytes = b"", succeed: bool = True) -> Output:
        bootstrap_option = ("--bootstrap-server", address)
        output = run_command(command(tool, *arguments, *bootstrap_option), stdin)
        assert "Traceback" not in output.stderr, output.stderr
        if succeed:
            assert output.exit_code == 0, f"{tool} {' '.join(arguments)} ended with {output}"
        return output

    return run


@pytest.fixture(scope="session")
def unique() -> Unique:
    """Names that no other test of the run has."""
    numbers = itertools.count()
    return lambda stem: f"{stem}-{next(numbers)}"


@pytest.fixture
def topic(headrace: Headrace, unique: Unique) -> str:
    """A topic with two partitions, of this test alone."""
    name = unique("cli")
    headrace("topics", "--create", "--topic", name, "--partitions", "2")
    return name


def parsed(output: Output) -> Any:
    """What a tool printed with `--output json`."""
    return json.loads(output.stdout)
