"""What a pipeline leaves on disk, and what is made of it when its process is gone."""

import json
import os
from pathlib import Path

import pytest

from headrace.pipelines.runs.run_state import RunError, RunState, default_directory, known


def test_a_run_from_its_begin_to_its_end(tmp_path: Path) -> None:
    state = RunState.of(tmp_path, "words")
    assert state.outcome() == "never run"
    state.begin(file="words.py")
    assert (state.outcome(), state.running_pid()) == ("running", os.getpid())
    state.report({"flows": {"copy": {"rows": 3}}})
    assert state.progress()["flows"]["copy"] == {"rows": 3}
    state.end("finished")
    assert (state.outcome(), state.running_pid()) == ("finished", None)
    assert state.run()["file"] == "words.py"
    assert [each.name for each in known(tmp_path)] == ["words"]


def test_a_process_that_died_without_a_word(tmp_path: Path) -> None:
    state = RunState.of(tmp_path, "words")
    state.begin()
    about = state.run()
    # The same number, but another process: this one was born at another time.
    (state.directory / "run.json").write_text(json.dumps({**about, "born": "1"}))
    assert state.outcome() == "died"
    with pytest.raises(RunError, match="does not run"):
        state.stop(1.0)


def test_one_pipeline_is_run_by_one_process(tmp_path: Path) -> None:
    state = RunState.of(tmp_path, "words")
    state.begin()
    about = state.run()
    parent = os.getppid()
    other = Path(f"/proc/{parent}/stat").read_text().rpartition(")")[2].split()[19]
    (state.directory / "run.json").write_text(json.dumps({**about, "pid": parent, "born": other}))
    with pytest.raises(RunError, match=f"is run by process {parent} already"):
        state.begin()


def test_half_a_file_is_no_file(tmp_path: Path) -> None:
    state = RunState.of(tmp_path, "words")
    state.begin()
    (state.directory / "progress.json").write_text('{"flows": {')
    assert state.progress() == {}


@pytest.mark.parametrize("name", ["", "..", "a/b", "-x", ".hidden"])
def test_a_name_is_a_name_and_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(RunError, match="is no name for a pipeline"):
        RunState.of(tmp_path, name)


def test_the_directory_is_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADRACE_STATE_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert default_directory() == tmp_path / "headrace" / "pipelines"
    monkeypatch.setenv("HEADRACE_STATE_DIR", str(tmp_path / "mine"))
    assert default_directory() == tmp_path / "mine"


def test_a_place_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no directory")
    state = RunState.of(tmp_path / "file", "words")
    with pytest.raises(RunError, match="words cannot be made"):
        state.begin()


def test_two_files_of_the_same_name_do_not_share_their_checkpoints(tmp_path: Path) -> None:
    one, other = (tmp_path / folder / "words.py" for folder in ("a", "b"))
    for path in (one, other):
        path.parent.mkdir()
        path.touch()
    state = RunState.of(tmp_path / "state", "words")
    state.begin(file=str(one))
    state.end("stopped")
    state.begin(file=str(one))
    state.end("stopped")
    with pytest.raises(RunError, match=r"is that of .*/a/words.py.*--name"):
        state.begin(file=str(other))
    assert state.run()["file"] == str(one)
    one.unlink()
    state.begin(file=str(other))  # the file was moved
    assert state.run()["file"] == str(other)
