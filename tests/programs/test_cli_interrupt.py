"""Ctrl-C at any moment of any tool: no process left, no stack trace, exit code 130, a terminal that works.

The tools that start servers or Spark are in `test_cli_interrupt_slow.py`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from headrace.cli.main import usage
from tests.programs.conftest import Headrace, Unique, command, run_command
from tests.programs.test_cli_interrupt_slow import SLOW
from tests.support.interrupting import (
    BEGUN,
    INTERRUPTED,
    Interrupted,
    Later,
    headrace_that_tells,
    interrupt,
)
from tests.support.server_process import free_port
from tools.pseudo_terminal import CTRL_C, PseudoTerminal

# After the program has begun: while it imports, connects, works.
MOMENTS_S = (0.0, 0.03, 0.1, 0.25, 0.6)
NOBODY = "127.0.0.1:1"
# The signal may come when all was done, or where nobody answers.
ENDED = (INTERRUPTED, 0, 1)

TALKING = {
    "topics": ["--list"],
    "console-producer": ["--topic", "{topic}"],
    "console-consumer": ["--topic", "{topic}", "--from-beginning"],
    "consumer-groups": ["--describe", "--all-groups"],
    "configs": ["--describe", "--topic", "{topic}"],
    "get-offsets": ["--topic", "{topic}"],
    "delete-records": ["--offset-json-file", "{offsets}"],
    "reassign-partitions": ["--verify", "--wait", "--reassignment-json-file", "{plan}"],
    "leader-election": ["--election-type", "preferred", "--all-topic-partitions"],
    "log-dirs": ["--describe"],
    "transactions": ["list"],
    "features": ["describe"],
    "broker-api-versions": [],
    "cluster": ["list-endpoints"],
    "producer-perf-test": [
        *("--topic", "{topic}", "--num-records", "100000000"),
        *("--record-size", "100", "--throughput", "1000"),
    ],
    "consumer-perf-test": ["--topic", "{topic}", "--num-records", "100000000", "--timeout", "60000"],
    "verifiable-producer": ["--topic", "{topic}", "--throughput", "100"],
    "verifiable-consumer": ["--topic", "{topic}", "--group-id", "interrupted"],
    "top": [],
    "pipeline redrive": ["{topic}"],
}  # fmt: skip
ALONE = {
    "server-start": ["--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", "log.dirs={dir}"],
    "zookeeper-start": ["{zookeeper}"],
    "schema-registry-start": ["--override", "listeners=http://127.0.0.1:0", "--override", f"kafkastore.bootstrap.servers={NOBODY}"],
    "rest-start": ["--override", "listeners=http://127.0.0.1:0", "--override", f"bootstrap.servers={NOBODY}"],
    "storage": ["format", "-t", "x", "-c", "{server}"],
    "dump-log": ["--files", "{segment}"],
    "completion": ["bash"],
    "doctor": [],
    "pipeline init": ["{dir}/new-{number}.py"],
    "pipeline validate": ["{pipeline}", "--quick"],
    "pipeline list": ["--state-dir", "{dir}"],
    "pipeline status": ["stubborn", "--state-dir", "{dir}"],
    "pipeline stop": ["stubborn", "--state-dir", "{dir}"],
}  # fmt: skip
# They would go on for ever, so that what ended them was the signal.
ENDLESS = {
    *("console-producer", "console-consumer", "producer-perf-test", "consumer-perf-test"),
    *("verifiable-producer", "verifiable-consumer", "zookeeper-start", "top", "pipeline stop"),
}
# Like Kafka's: a server that was told to stop, and has, is no failure.
SERVERS = {"server-start"}

# Runs a pipeline, by what its state says, and does not stop when asked to.
STUBBORN = """
import signal, sys
from pathlib import Path
from headrace.pipelines.runs.run_state import RunState

signal.signal(signal.SIGTERM, signal.SIG_IGN)
RunState.of(Path(sys.argv[1]), "stubborn").begin(file="stubborn.py", master="local")
print("begun", flush=True)
sys.stdin.read()
"""


def listed(text: str) -> set[str]:
    """The names at the beginning of the lines of a help text."""
    return {line.split()[0] for line in text.splitlines() if line.startswith("  ")}


def test_every_tool_is_interrupted_somewhere() -> None:
    tools = listed(usage())
    pipeline = listed(run_command(command("pipeline", "--help")).stdout)
    assert len(pipeline) > 5
    wanted = {*(tools - {"pipeline"}), *(f"pipeline {name}" for name in pipeline)}
    assert {*TALKING, *ALONE, *SLOW} == wanted


@pytest.fixture(scope="module")
def names(
    headrace: Headrace, unique: Unique, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """What stands in braces above."""
    topic, tmp_path = unique("interrupted"), tmp_path_factory.mktemp("interrupted")
    headrace("topics", "--create", "--topic", topic)
    headrace("console-producer", "--topic", topic, stdin=b"one\ntwo\n")

    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    one = {"topic": topic, "partition": 0}
    zookeeper = f"dataDir={tmp_path}/zk\nclientPort={free_port()}\nadmin.enableServer=false\n"
    pipeline = str(tmp_path / "words.py")
    assert run_command(command("pipeline", "init", pipeline)).exit_code == 0
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN, str(tmp_path / "data")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as stubborn:
        assert stubborn.stdout is not None
        assert stubborn.stdout.readline() == b"begun\n"
        yield {
            "topic": topic,
            "dir": str(tmp_path / "data"),
            "segment": write("00000000000000000000.log", ""),
            "offsets": write("offsets.json", json.dumps({"partitions": [{**one, "offset": 0}]})),
            "plan": write("plan.json", json.dumps({"partitions": [{**one, "replicas": [1]}]})),
            "server": write("server.properties", f"log.dirs={tmp_path}/formatted\n"),
            "zookeeper": write("zookeeper.properties", zookeeper),
            "pipeline": pipeline,
        }


def words_of(tool: str, arguments: list[str], names: dict[str, str], number: int) -> list[str]:
    filled = [word.format(**names, number=number) for word in arguments]
    return headrace_that_tells([*tool.split(), *filled])


def interrupt_at(words: list[str], moment_s: float) -> Interrupted:
    return interrupt(words, Later(BEGUN, moment_s))


def codes(tool: str) -> tuple[int, ...]:
    if tool in SERVERS:
        return (INTERRUPTED, 0)
    return (INTERRUPTED,) if tool in ENDLESS else ENDED


@pytest.mark.parametrize("tool", TALKING)
def test_tools_that_talk_to_a_broker(address: str, names: dict[str, str], tool: str) -> None:
    words = [*words_of(tool, TALKING[tool], names, 0), "--bootstrap-server", address]
    with ThreadPoolExecutor(2) as threads:
        for ended in threads.map(lambda moment_s: interrupt_at(words, moment_s), MOMENTS_S):
            ended.check(*codes(tool))


@pytest.mark.parametrize("tool", TALKING)
def test_tools_that_find_nobody(names: dict[str, str], tool: str) -> None:
    words = [*words_of(tool, TALKING[tool], names, 0), "--bootstrap-server", NOBODY]
    with ThreadPoolExecutor(2) as threads:
        for ended in threads.map(lambda moment_s: interrupt_at(words, moment_s), (0.0, 0.3)):
            ended.check(*ENDED)


@pytest.mark.parametrize("tool", ALONE)
def test_tools_that_work_alone(names: dict[str, str], tool: str) -> None:
    for number, moment_s in enumerate(MOMENTS_S):  # one after the other: they share a directory
        words = words_of(tool, ALONE[tool], names, number)
        interrupt_at(words, moment_s).check(*codes(tool))


def test_a_bar_is_taken_away_before_the_result_comes(address: str, topic: str) -> None:
    words = command(
        *("producer-perf-test", "--bootstrap-server", address, "--topic", topic),
        *("--num-records", "1000000", "--record-size", "10", "--throughput", "1000"),
    )
    ended = interrupt(words, lambda shown: "writing [" in shown and " left" in shown)
    ended.check()
    assert "99.9th." in ended.written
    last_bar = ended.written.rindex("writing [")
    assert "\r\x1b[K" in ended.written[last_bar:]
    assert ended.written.rindex("records sent") > last_bar


def test_what_was_typed_is_written(headrace: Headrace, address: str, topic: str) -> None:
    words = command("console-producer", "--bootstrap-server", address, "--topic", topic)
    with PseudoTerminal(words) as producer:
        producer.read_until(lambda shown: ">" in shown)
        producer.type(b"typed\n")
        producer.read_until(lambda shown: shown.count(">") == 2)
        producer.type(CTRL_C)
        assert producer.wait() == INTERRUPTED
        assert "Traceback" not in producer.text
    output = headrace(
        *("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "1")
    )
    assert output.stdout == "typed\n"


def test_a_file_that_ends_early_is_no_surprise(tmp_path: Path) -> None:
    """Nothing that was interrupted is taken for a whole."""
    file = tmp_path / "words.py"
    for moment_s in MOMENTS_S:
        words = headrace_that_tells(["pipeline", "init", str(file)])
        interrupt_at(words, moment_s).check(*ENDED)
        assert not file.exists() or file.read_text().endswith("\n")
        file.unlink(missing_ok=True)
