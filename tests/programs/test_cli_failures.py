"""What goes wrong on the first day is told in three lines: what happened, why, what to do."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.programs.conftest import Headrace, command, run_command
from tests.support.kafka_tools import Output

START = ("server-start", "--override", "listeners=PLAINTEXT://127.0.0.1:0")


def story(output: Output) -> tuple[str, str, str]:
    """What, why, what to do; nothing else that looks like an error, and exit code 1."""
    assert output.exit_code == 1
    assert "Traceback" not in output.stderr
    *_, what, why, hint = output.stderr.splitlines()
    assert re.match(r"headrace( [a-z-]+)?: ", what), output.stderr
    assert why.startswith("  why: ")
    assert hint.startswith("  try: ")
    return what.partition(": ")[2], why[7:], hint[7:]


@contextmanager
def running(words: list[str]) -> Iterator[list[str]]:
    """A broker that is ready, and what it said before it was."""
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as broker:
        assert broker.stdout is not None
        said = []
        for line in broker.stdout:
            said.append(line)
            if "is ready" in line:
                break
        yield said
        broker.terminate()
        broker.communicate()


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_busy_port(busy_port: int, tmp_path: Path) -> None:
    output = run_command(
        command(
            *("server-start", "--override", f"log.dirs={tmp_path}"),
            *("--override", f"listeners=PLAINTEXT://127.0.0.1:{busy_port}"),
        )
    )
    what, why, hint = story(output)
    assert what == f"cannot listen on 127.0.0.1:{busy_port}"
    assert why == "another program has the port, perhaps another broker"
    assert f"listeners=PLAINTEXT://127.0.0.1:{busy_port + 1}" in hint


def test_a_busy_port_for_metrics(busy_port: int, tmp_path: Path) -> None:
    output = run_command(
        command(
            *("server-start", "--override", f"log.dirs={tmp_path}"),
            *("--override", "listeners=PLAINTEXT://127.0.0.1:0"),
            *("--override", f"headrace.http.listeners=http://127.0.0.1:{busy_port}"),
        )
    )
    what, _, hint = story(output)
    assert what == f"cannot listen on 127.0.0.1:{busy_port}"
    assert f"headrace.http.listeners=http://127.0.0.1:{busy_port + 1}" in hint


def test_a_busy_port_for_a_zookeeper(busy_port: int, tmp_path: Path) -> None:
    file = tmp_path / "zookeeper.properties"
    file.write_text(f"dataDir={tmp_path}\nclientPort={busy_port}\n")
    what, why, hint = story(run_command(command("zookeeper-start", str(file))))
    assert what == f"cannot listen on *:{busy_port}"
    assert why.endswith("another program has the port, perhaps another ZooKeeper")
    assert "clientPort" in hint


def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    output = run_command(
        command(
            *("server-start", "--override", f"log.dirs={tmp_path}"),
            *("--override", "listeners=PLAINTEXT://192.0.2.1:9092"),
        )
    )
    assert story(output)[1].startswith("this machine has no such address")


def test_no_zookeeper_for_a_broker(tmp_path: Path) -> None:
    output = run_command(
        command(
            *(*START, "--override", f"log.dirs={tmp_path}"),
            *("--override", "zookeeper.connect=127.0.0.1:1/x"),
            *("--override", "zookeeper.connection.timeout.ms=1000"),
        )
    )
    what, _, hint = story(output)
    assert what == "cannot reach a ZooKeeper at 127.0.0.1:1/x"
    assert "'headrace zookeeper-start'" in hint


def test_no_zookeeper_for_a_tool() -> None:
    what, _, hint = story(run_command(command("topics", "--list", "--zookeeper", "127.0.0.1:1")))
    assert what == "cannot reach a ZooKeeper at 127.0.0.1:1"
    assert "'headrace zookeeper-start'" in hint


def test_no_broker_for_a_tool() -> None:
    output = run_command(command("topics", "--list", "--bootstrap-server", "127.0.0.1:1"))
    what, _, hint = story(output)
    assert what == "cannot reach a broker at 127.0.0.1:1"
    assert "'headrace server-start'" in hint


@pytest.mark.parametrize("version", [(3, 8, 1), (3, 10, 13)])
def test_an_old_python(version: tuple[int, ...]) -> None:
    program = f"import sys; sys.version_info = {version!r}; from headrace.cli.main import main; sys.exit(main())"
    what, why, hint = story(run_command([sys.executable, "-c", program]))
    assert what == f"cannot run on Python 3.{version[1]}"
    assert why.startswith("it needs Python 3.11 or newer")
    assert "make PYTHON=" in hint


def test_a_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    directory = Path("/proc/headrace")  # root may write anywhere else
    if os.geteuid() != 0:
        directory = tmp_path / "closed" / "data"
        directory.parent.mkdir(mode=0o500)
    output = run_command(command(*START, "--override", f"log.dirs={directory}"))
    what, _, hint = story(output)
    assert what == f"cannot write to {directory}"
    assert "log.dirs=" in hint


def test_a_directory_in_use(tmp_path: Path) -> None:
    words = command(*START, "--override", f"log.dirs={tmp_path}")
    with running(words):
        output = run_command(words)
    what, why, _ = story(output)
    assert what == f"cannot use the log directory {tmp_path}"
    assert why == "another broker is running on it"


def test_a_low_limit_of_open_files(tmp_path: Path) -> None:
    words = command(*START, "--override", f"log.dirs={tmp_path}")
    with running(["sh", "-c", 'ulimit -n 256; exec "$@"', "sh", *words]) as said:
        pass
    [remark] = [line for line in said if " WARN " in line]
    assert "only 256 files may be open at once" in remark
    assert "'ulimit -n 65536'" in remark


def test_a_file_that_is_not_there() -> None:
    what, why, _ = story(run_command(command("server-start", "/nowhere/server.properties")))
    assert (what, why) == ("cannot read /nowhere/server.properties", "No such file or directory")


def test_a_topic_that_is_not_there_gets_the_nearest_name(headrace: Headrace, topic: str) -> None:
    hint = f"did you mean '{topic}'?"
    almost = topic.replace("cli", "cil")
    describe = headrace("topics", "--describe", "--topic", almost, succeed=False)
    assert hint in describe.stderr
    configs = headrace("configs", "--describe", "--topic", almost, succeed=False)
    assert hint in configs.stdout + configs.stderr
    offsets = headrace("get-offsets", "--topic", almost, succeed=False)
    assert hint in offsets.stderr


def test_json_logs_stay_json(busy_port: int, tmp_path: Path) -> None:
    output = run_command(
        command(
            *("server-start", "--json-logs", "--override", f"log.dirs={tmp_path}"),
            *("--override", f"listeners=PLAINTEXT://127.0.0.1:{busy_port}"),
        )
    )
    assert output.exit_code == 1
    assert output.stderr == ""
    assert all(line.startswith("{") for line in output.stdout.splitlines())
    assert f"cannot listen on 127.0.0.1:{busy_port}" in output.stdout


# Words after which a tool can only say what is wrong with them: in braces stands a file with such contents.
WRONG_INPUT = {
    "delete-records --offset-json-file {missing}": "cannot read",
    "delete-records --offset-json-file {empty}": "not a valid JSON",
    "delete-records --offset-json-file {list}": "does not say which records to delete",
    "delete-records --offset-json-file {object}": "does not say which records to delete",
    "delete-records --offset-json-file {bytes}": "cannot read",
    "leader-election --election-type preferred --path-to-json-file {empty}": "election data is empty",
    "leader-election --election-type preferred --path-to-json-file {object}": "is missing",
    "reassign-partitions --verify --reassignment-json-file {empty}": "not a valid JSON",
    "reassign-partitions --verify --reassignment-json-file {list}": "not a valid JSON",
    "reassign-partitions --execute --reassignment-json-file {missing}": "cannot read",
    "topics --list --command-config {missing}": "cannot read",
    "topics --list --command-config {bytes}": "cannot read",
    "pipeline redrive no-such-topic": "there is no topic",
}
WRONG_INPUT_ALONE = {
    "server-start {missing}": "cannot read",
    "server-start {bytes}": "cannot read",
    "server-start --override nonsense": "expected name=value",
    "zookeeper-start {missing}": "cannot read",
    "zookeeper-start {bytes}": "cannot read",
    "zookeeper-start {empty}": "where to keep the data",
    "storage format -t x -c {missing}": "cannot read",
    "dump-log --files {missing}.log": "cannot read",
    "pipeline init {missing}/x.py": "cannot write",
    "pipeline init {empty}": "is there already",
    "pipeline run {missing}": "there is no file",
    "pipeline validate {missing} --quick": "there is no file",
    "pipeline status nobody": "no pipeline nobody was run",
    "pipeline stop nobody": "does not run",
    "dev --data-dir {empty}/x": "cannot make",
}
WRONG_OPTIONS = (
    *("server-start --overide a=b", "zookeeper-start --port 1", "top --intervall 1", "dev --broker x"),
    *("demo --events 5", "completion tcsh", "topics --lst", "sql", "dev --brokers 0"),
)  # fmt: skip


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setenv("HEADRACE_STATE_DIR", str(tmp_path / "state"))
    contents = {"empty": b"", "list": b"[]", "object": b"{}", "bytes": b"x=\xff\xfe"}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return {name: str(tmp_path / name) for name in (*contents, "missing")}


def check_story(output: Output, what: str) -> None:
    assert output.exit_code == 1, output
    assert "Traceback" not in output.stderr
    assert "Error: " not in output.stderr, "the name of a class is no reason"
    told = [line for line in output.stderr.splitlines() if line.startswith("headrace ")]
    assert len(told) == 1, output.stderr
    assert what in output.stderr
    assert "  try: " in output.stderr or "  why: " in output.stderr


@pytest.mark.parametrize("line", WRONG_INPUT)
def test_wrong_input(headrace: Headrace, files: dict[str, str], line: str) -> None:
    words = [word.format(**files) for word in line.split()]
    check_story(headrace(*words, succeed=False), WRONG_INPUT[line])


@pytest.mark.parametrize("line", WRONG_INPUT_ALONE)
def test_wrong_input_of_what_needs_no_broker(files: dict[str, str], line: str) -> None:
    words = [word.format(**files) for word in line.split()]
    check_story(run_command(command(*words)), WRONG_INPUT_ALONE[line])


@pytest.mark.parametrize("line", WRONG_OPTIONS)
def test_wrong_options(line: str) -> None:
    output = run_command(command(*line.split()))
    assert output.exit_code == 1
    assert output.stdout == ""
    assert len(output.stderr.splitlines()) == 2, output.stderr
    assert output.stderr.splitlines()[1].startswith(f"usage: headrace {line.split(maxsplit=1)[0]} ")


def test_an_existing_topic_has_a_way_out(headrace: Headrace, topic: str) -> None:
    output = headrace("topics", "--create", "--topic", topic, succeed=False)
    assert (output.exit_code, output.stderr.strip().partition(" ")[0]) == (1, "try:")
    headrace("topics", "--create", "--topic", topic, "--if-not-exists")
