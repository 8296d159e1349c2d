"""`headrace demo`: ends by itself with everything verified, leaves nothing behind, and fails where something does not hold."""

import os
import re
import shutil
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from headrace.cli.demo import story
from headrace.cli.demo.stage import Stage
from headrace.cli.local.port_reservations import PortReservations
from headrace.cli.shell.command_line import Failure
from headrace.cli.shell.stopping import StopRequest
from tests.programs.conftest import command, run_command
from tests.support.interrupting import MARK, marked

STEP = re.compile(r"^ ?(\d+)  ", re.MULTILINE)


@pytest.fixture(autouse=True)
def own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what the demo leaves behind can be told from what others do."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def leftovers(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if name.startswith("headrace-demo-")]


def test_everything_it_shows_is_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "demo-that-ends")
    picture = tmp_path / "chart.svg"
    words = command("demo", "--events", "12000", "--picture", str(picture))
    output = run_command(words, timeout_s=280)
    assert output.exit_code == 0, output
    assert STEP.findall(output.stdout) == ["1", "2", "3", "4", "5", "6", "7", "8"]
    assert "all 12,000 acknowledged events are there: none lost, none twice" in output.stdout
    assert (
        "500 late events counted, 500 too late ones left out; plain Python agrees" in output.stdout
    )
    assert "All of it was verified" in output.stdout
    assert "Traceback" not in output.stderr
    root = ET.fromstring(picture.read_text())
    assert root.tag.endswith("svg")
    assert leftovers(tmp_path) == []
    assert marked("demo-that-ends") == []


def test_a_lost_event_would_be_found(tmp_path: Path) -> None:
    directory = tmp_path / "stage"
    with PortReservations() as ports:
        stage = Stage(directory, StopRequest(), ports)
        with stage.servers:
            check_that_a_loss_is_found(stage)
    shutil.rmtree(directory)


def check_that_a_loss_is_found(stage: Stage) -> None:
    stage.servers.start()
    stage.create_topic(story.TOPIC, story.PARTITIONS)
    with pytest.raises(Failure, match="1 acknowledged events are gone"):
        story.check_nothing_lost(stage, {b"never sent"})
