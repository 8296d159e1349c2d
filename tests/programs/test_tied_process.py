"""Processes that end with whoever started them: by whatever signal, at whatever moment, from whichever thread."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.tied_process import TiedProcess
from tests.programs.conftest import Headrace, command, run_command
from tests.support.broker import bootstrap
from tests.support.headrace_process import HeadraceProcess
from tests.support.interrupting import MARK, left_behind, marked

PATIENCE_S = 400
PYTHON_ENDS_S = (
    60.0  # Spark's Python ends when it finds its Java gone; it may be importing meanwhile
)

# Starts a child, from a thread that ends at once where told so, and tells when the child is at work.
OWNER = """
import subprocess, sys, threading, time
from headrace.tied_process import TiedProcess

CHILD = "import signal, sys, time; {ignore}; print('at work', flush=True); time.sleep(1000)"
started = []
start = lambda: started.append(TiedProcess([sys.executable, "-c", CHILD], stdout=subprocess.PIPE))
thread = threading.Thread(target=start)
thread.start()
thread.join()
print(started[0].stdout.readline().decode().strip(), flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_child_ends_with_its_owner(number: signal.Signals) -> None:
    mark = uuid.uuid4().hex
    with subprocess.Popen(
        [sys.executable, "-c", OWNER.format(ignore="0")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, MARK: mark},
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"at work\n"
        assert any("at work" in line for line in marked(mark)), "the thread that started it is gone"
        os.kill(owner.pid, number)
    assert left_behind(mark) == []


def test_pid_signals_and_exit_code_are_the_programs_own() -> None:
    words = [sys.executable, "-c", "import os; print(os.getpid(), flush=True); os.read(0, 1)"]
    with TiedProcess(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
        assert process.stdout.read() == b"", "nobody else holds what it wrote to"


def test_a_program_that_is_not_there_is_told() -> None:
    with TiedProcess(["/no/such/program"], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.read() == b"cannot run /no/such/program: No such file or directory\n"
    assert process.returncode == 1


@pytest.fixture(scope="module")
def pipeline(headrace: Headrace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    for topic in ("lines", "word-counts"):
        headrace("topics", "--create", "--if-not-exists", "--topic", topic)
    file = tmp_path_factory.mktemp("pipeline") / "words.py"
    assert run_command(command("pipeline", "init", str(file))).exit_code == 0
    return file


def has_java(mark: str) -> bool:
    return any("org.apache.spark" in line for line in marked(mark))


def has_python_for_spark(mark: str) -> bool:
    """Whether the process is there that answers Spark about offsets."""
    return any("python_streaming_source_runner" in line for line in marked(mark))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("tool", ["sql", "pipeline run", "pipeline validate"])
def test_no_java_is_left_of_a_start_that_was_cut_short(
    address: str, pipeline: Path, tmp_path: Path, tool: str, number: signal.Signals
) -> None:
    """The moment is the worst one: Java is starting, and nobody has heard from it yet."""
    mark = uuid.uuid4().hex
    with started(tool, address, pipeline, tmp_path, mark) as process:
        wait_until(lambda: has_java(mark), process, look_again_s=0.01)
        process.send_signal(number)
        process.wait(60)
    assert left_behind(mark) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_pipeline_that_was_at_work(
    address: str, pipeline: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """Java has Python processes of its own then, for planning and for tasks. SIGINT is `test_cli_interrupt_slow`'s."""
    mark = uuid.uuid4().hex
    with started("pipeline run", address, pipeline, tmp_path, mark) as process:
        wait_until(lambda: has_python_for_spark(mark), process, look_again_s=0.5)
        process.send_signal(number)
        process.wait(60)
    assert left_behind(mark, grace_s=PYTHON_ENDS_S) == []


@pytest.mark.timeout(600)
def test_nothing_is_left_of_a_pipeline_that_waits_for_a_broker(
    pipeline: Path, tmp_path: Path
) -> None:
    """The process that asks for offsets tries for two minutes to reach the broker, and must not outlive Java."""
    mark = uuid.uuid4().hex
    with HeadraceProcess(tmp_path / "broker") as broker:
        for topic in ("lines", "word-counts"):
            words = ("topics", "--create", "--topic", topic)
            assert (
                run_command(command(*words, "--bootstrap-server", bootstrap(broker))).exit_code == 0
            )
        with started("pipeline run", bootstrap(broker), pipeline, tmp_path, mark) as process:
            wait_until(lambda: has_python_for_spark(mark), process, look_again_s=0.5)
            broker.kill()
            process.kill()
            process.wait(60)
            assert left_behind(mark, grace_s=PYTHON_ENDS_S) == []


@contextmanager
def started(
    tool: str, address: str, pipeline: Path, directory: Path, mark: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A tool at work. It is killed at the end, so that a test that fails does not wait for it."""
    words = {
        "sql": ["sql", "select sum(id) from range(100000000000)"],
        "pipeline run": ["pipeline", "run", str(pipeline), "--state-dir", str(directory)],
        "pipeline validate": ["pipeline", "validate", str(pipeline), "--state-dir", str(directory)],
    }[tool]
    with subprocess.Popen(
        command(*words, "--bootstrap-server", address, "--master", "local[1]"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, MARK: mark, "XDG_STATE_HOME": str(directory)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(
    is_so: Callable[[], bool], process: "subprocess.Popen[bytes]", look_again_s: float
) -> None:
    """Looking often takes time away from what is waited for: it reads the environment of every process."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(look_again_s)
