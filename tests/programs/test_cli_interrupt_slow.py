"""Ctrl-C for the tools that start servers or Spark: at a few moments each, because every run takes seconds."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs.conftest import Headrace, command, run_command
from tests.support.interrupting import BEGUN, Later, headrace_that_tells, interrupt

PATIENCE_S = 120
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_READY = "Ctrl-C stops everything"


@dataclass(frozen=True, slots=True)
class Case:
    """A command line, and the moments for it: what is to be seen, and how many seconds later."""

    words: tuple[str, ...]
    moments: tuple[tuple[str, float], ...]


_DEV = ("--port", "0", "--data-dir", "{dir}/dev")
_SPARK = ("--bootstrap-server", "{address}", "--master", "local[2]")
_PIPELINE = ("{pipeline}", *_SPARK, "--state-dir", "{dir}/state")

SLOW = {
    "dev": (
        Case(("dev", *_DEV), ((BEGUN, 0.0), (BEGUN, 0.2), (_READY, 0.0))),
        Case(("dev", "--brokers", "3", *_DEV), ((BEGUN, 0.4), (BEGUN, 1.5), (_READY, 0.0))),
    ),
    "demo": (
        Case(
            ("demo", "--events", "12000", "--without-spark"),
            ((BEGUN, 0.0), (BEGUN, 0.6), (" 2  ", 0.3), (" 4  ", 1.0)),
        ),
        Case(("demo", "--events", "2000", "--picture", "{dir}/demo.svg"), ((" 6  ", 5.0),)),
    ),
    "pipeline validate": (Case(("pipeline", "validate", *_PIPELINE), ((BEGUN, 2.0),)),),
    "pipeline run": (
        Case(("pipeline", "run", *_PIPELINE), ((BEGUN, 0.2), (BEGUN, 2.0), ("running: ", 1.0))),
    ),
    "sql": (
        Case(
            ("sql", "select sum(id) from range(100000000000)", *_SPARK),
            ((BEGUN, 0.2), (BEGUN, 2.0), (BEGUN, 10.0)),
        ),
    ),
}
RUNS = [
    pytest.param(case, *moment, id=f"{tool}-{number}-{moment[0].strip(' <>:')}-{moment[1]:g}s")
    for tool, cases in SLOW.items()
    for number, case in enumerate(cases)
    for moment in case.moments
]


class InPlainText(Later):
    """A moment that is told from what is written without its colours."""

    def __call__(self, written: str) -> bool:
        return super().__call__(_COLOUR.sub("", written))


@pytest.fixture(scope="module")
def pipeline(headrace: Headrace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that runs on and on, with something to do."""
    for topic in ("lines", "word-counts"):
        headrace("topics", "--create", "--if-not-exists", "--topic", topic)
    headrace("console-producer", "--topic", "lines", stdin=b"to be or not to be\n")
    file = tmp_path_factory.mktemp("pipeline") / "words.py"
    assert run_command(command("pipeline", "init", str(file))).exit_code == 0
    return file


@pytest.mark.parametrize(("case", "sight", "seconds"), RUNS)
def test_nothing_is_left(
    case: Case, sight: str, seconds: float, address: str, pipeline: Path, tmp_path: Path
) -> None:
    names = {"dir": str(tmp_path), "address": address, "pipeline": str(pipeline)}
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ended = interrupt(
        headrace_that_tells([word.format(**names) for word in case.words]),
        InPlainText(sight, seconds),
        environ={"TMPDIR": str(temporary)},
        timeout_s=PATIENCE_S,
    )
    ended.check()
    assert [path.name for path in temporary.iterdir() if path.is_dir()] == []
    for about in tmp_path.glob("state/*/run.json"):
        assert json.loads(about.read_text())["outcome"] == "stopped"
