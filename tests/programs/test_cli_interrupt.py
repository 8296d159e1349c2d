"""Ctrl-C at any moment of any tool: no process left, no stack trace, exit code 130, a terminal that works."""

import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.cli.main import TOOLS
from tests.programs.conftest import Headrace, Unique, command
from tests.support.server_process import free_port

PATIENCE_S = 20
# After the program has begun: while it imports, connects, works.
MOMENTS_S = (0.0, 0.03, 0.1, 0.25, 0.6)
NOBODY = "127.0.0.1:1"
# The second is 130 to a shell, too: the interpreter, in its last moments, lets the system end it.
INTERRUPTED = (130, -signal.SIGINT)
# Where the signal came when all was done, or where nobody answers.
ENDED = (*INTERRUPTED, 0, 1)

# Tells its parent when the first module of the tool is looked for: what comes before is the interpreter's.
PROGRAM = """
import os, sys
from headrace.cli.main import main

def listen(event, details, told=[]):
    if event == "import" and details[0].startswith("headrace.cli.") and not told:
        told.append(os.write(1, b"!"))

sys.addaudithook(listen)
sys.exit(main())
"""

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
}  # fmt: skip
ALONE = {
    "server-start": ["--override", "listeners=PLAINTEXT://127.0.0.1:0", "--override", "log.dirs={dir}"],
    "zookeeper-start": ["{zookeeper}"],
    "storage": ["format", "-t", "x", "-c", "{server}"],
    "dump-log": ["--files", "{segment}"],
    "completion": ["bash"],
    "doctor": [],
}  # fmt: skip
# They start other programs, and have tests of their own.
ELSEWHERE = {"demo", "dev", "pipeline", "sql"}
# They would go on for ever, so that what ended them was the signal.
ENDLESS = {
    *("console-producer", "console-consumer", "producer-perf-test", "consumer-perf-test"),
    *("verifiable-producer", "verifiable-consumer", "zookeeper-start"),
}


def test_every_tool_is_interrupted_somewhere() -> None:
    assert {*TALKING, *ALONE, *ELSEWHERE} == set(TOOLS)


class Interrupted:
    """A tool that got a SIGINT some time after it began."""

    def __init__(self, words: list[str], moment_s: float) -> None:
        self.story = f"{' '.join(words)} after {moment_s} s"
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdout.read(1) == b"!"
        time.sleep(moment_s)
        process.send_signal(signal.SIGINT)
        try:
            _, stderr = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            _, stderr = process.communicate()
            pytest.fail(f"{self.story} goes on: {stderr.decode()}")
        self.stderr = stderr.decode()
        self.exit_code = process.returncode
        self.left_behind = _is_anybody_in(process.pid)


def _is_anybody_in(group_id: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.killpg(group_id, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module")
def names(
    headrace: Headrace, unique: Unique, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What stands in braces above."""
    topic, tmp_path = unique("interrupted"), tmp_path_factory.mktemp("interrupted")
    headrace("topics", "--create", "--topic", topic)
    headrace("console-producer", "--topic", topic, stdin=b"one\ntwo\n")

    def write(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    one = {"topic": topic, "partition": 0}
    zookeeper = f"dataDir={tmp_path}/zk\nclientPort={free_port()}\nadmin.enableServer=false\n"
    segment = tmp_path / "00000000000000000000.log"
    segment.touch()
    return {
        "topic": topic,
        "dir": str(tmp_path / "data"),
        "segment": str(segment),
        "offsets": write("offsets.json", json.dumps({"partitions": [{**one, "offset": 0}]})),
        "plan": write("plan.json", json.dumps({"partitions": [{**one, "replicas": [1]}]})),
        "server": write("server.properties", f"log.dirs={tmp_path}/formatted\n"),
        "zookeeper": write("zookeeper.properties", zookeeper),
    }


def interrupt_all(words: list[str], moments_s: tuple[float, ...]) -> Iterator[Interrupted]:
    with ThreadPoolExecutor(2) as threads:
        yield from threads.map(lambda moment_s: Interrupted(words, moment_s), moments_s)


def check(ended: Interrupted, exit_codes: tuple[int, ...]) -> None:
    assert ended.exit_code in exit_codes, f"{ended.story}: {ended.exit_code}: {ended.stderr}"
    for word in ("Traceback", "KeyboardInterrupt", "Exception ignored"):
        assert word not in ended.stderr, f"{ended.story}: {ended.stderr}"
    assert not ended.left_behind, ended.story


@pytest.mark.parametrize("tool", TALKING)
def test_tools_that_talk_to_a_broker(address: str, names: dict[str, str], tool: str) -> None:
    arguments = [word.format(**names) for word in TALKING[tool]]
    words = [tool, *arguments, "--bootstrap-server", address]
    for ended in interrupt_all(words, MOMENTS_S):
        check(ended, INTERRUPTED if tool in ENDLESS else ENDED)


@pytest.mark.parametrize("tool", TALKING)
def test_tools_that_find_nobody(names: dict[str, str], tool: str) -> None:
    arguments = [word.format(**names) for word in TALKING[tool]]
    for ended in interrupt_all([tool, *arguments, "--bootstrap-server", NOBODY], (0.0, 0.3)):
        check(ended, ENDED)


@pytest.mark.parametrize("tool", ALONE)
def test_tools_that_work_alone(names: dict[str, str], tool: str) -> None:
    words = [tool, *(word.format(**names) for word in ALONE[tool])]
    for moment_s in MOMENTS_S:  # one after the other: they share a directory
        check(Interrupted(words, moment_s), INTERRUPTED if tool in ENDLESS else ENDED)


class Terminal:
    """A tool on a terminal of its own."""

    def __init__(self, words: list[str]) -> None:
        self._master, slave = pty.openpty()
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *words], stdin=slave, stdout=slave, stderr=slave
        )
        self.shown = b""

    def read_until(self, is_enough: Callable[[bytes], bool]) -> None:
        os.set_blocking(self._master, False)
        deadline = time.monotonic() + PATIENCE_S
        while not is_enough(self.shown):
            assert time.monotonic() < deadline, self.shown
            try:
                self.shown += os.read(self._master, 65536)
            except BlockingIOError:
                time.sleep(0.02)

    def press_ctrl_c(self) -> int:
        os.write(self._master, b"\x03")
        return self.process.wait(PATIENCE_S)

    @property
    def after(self) -> list[object]:
        return list(termios.tcgetattr(self._slave))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)


def test_a_terminal_is_as_before(address: str, topic: str) -> None:
    words = command(
        *("producer-perf-test", "--bootstrap-server", address, "--topic", topic),
        *("--num-records", "1000000", "--record-size", "10", "--throughput", "1000"),
    )
    terminal = Terminal(words)
    try:
        terminal.read_until(lambda shown: b"writing [" in shown and b" left" in shown)
        assert terminal.press_ctrl_c() == 130
        terminal.read_until(lambda shown: b"99.9th." in shown)
        # The bar was taken away before the result came.
        last_bar = terminal.shown.rindex(b"writing [")
        assert b"\r\x1b[K" in terminal.shown[last_bar:]
        assert terminal.shown.rindex(b"records sent") > last_bar
        assert b"\x1b[?25l" not in terminal.shown
        assert terminal.after == list(terminal.before)
    finally:
        terminal.close()


def test_what_was_typed_is_written(headrace: Headrace, address: str, topic: str) -> None:
    producer = Terminal(
        command("console-producer", "--bootstrap-server", address, "--topic", topic)
    )
    try:
        producer.read_until(lambda shown: b">" in shown)
        os.write(producer._master, b"typed\n")
        producer.read_until(lambda shown: shown.count(b">") == 2)
        assert producer.press_ctrl_c() == 130
        assert b"Traceback" not in producer.shown
    finally:
        producer.close()
    output = headrace(
        *("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "1")
    )
    assert output.stdout == "typed\n"
