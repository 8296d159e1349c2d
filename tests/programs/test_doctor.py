"""`headrace doctor`: a line for everything, and exit code 1 only where something needed is missing."""

import socket
from pathlib import Path

import pytest

from headrace.cli.local.doctor_checks import check_java, check_port
from tests.programs.conftest import command, parsed, run_command


def test_this_machine_will_do(address: str) -> None:
    output = run_command(command("doctor", "--bootstrap-server", address))
    assert (output.exit_code, output.stderr) == (0, "")
    lines = output.stdout.splitlines()
    subjects = [line[6:22].strip() for line in lines if line[:4].strip() in ("ok", "note", "FAIL")]
    wanted = ["Python", "packages", "codecs", "open files", "data directory", "temporary files"]
    assert subjects[:6] == wanted
    assert {"disk", "port 9092", "Java", "ZooKeeper", "Spark", "broker"} <= set(subjects)
    assert lines[-1] == "all that is needed is there"


def test_a_broker_that_does_not_answer_is_a_failure() -> None:
    output = run_command(command("doctor", "--bootstrap-server", "127.0.0.1:1", "--output", "json"))
    assert output.exit_code == 1
    verdicts = {each["check"]: each["verdict"] for each in parsed(output)}
    assert verdicts["broker"] == "failed"
    assert verdicts["Python"] == "ok"


def test_a_directory_that_cannot_be_written_to_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    output = run_command(command("doctor", "--data-dir", str(tmp_path / "file" / "data")))
    assert output.exit_code == 1
    assert "FAIL  data directory" in output.stdout


def test_a_port_is_free_or_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert check_port(port, "Kafka").verdict == "note"
    assert check_port(port, "Kafka").verdict == "ok"


def test_a_java_that_does_not_run_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 3\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert check_java("failed").verdict == "failed"
    assert check_java("note").verdict == "note"
