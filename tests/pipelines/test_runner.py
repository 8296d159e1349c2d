"""The runner as a user meets it: init, validate, run, list, status, stop, again; and SQL over what is stored."""

import json
from pathlib import Path

from tests.pipelines.pipeline_process import QUICK, call, kill, start
from tests.pipelines.queries import eventually
from tests.support.spark_topics import Topics

BROKEN = """
from headrace.pipelines.pipeline import flow, source, topic
source("lines", topic("lines", valueFormat="string"))

@flow(into=topic("out"))
def copy(linse):
    return linse
"""


def newest_counts(topics: Topics) -> dict[str, int]:
    found = (json.loads(value or b"") for value in topics.values("word-counts"))
    return {each["word"]: each["count"] for each in found}


def test_a_pipeline_from_its_first_line_to_its_stop(topics: Topics, tmp_path: Path) -> None:
    path, state = tmp_path / "words.py", tmp_path / "state"
    assert call("pipeline", "init", str(path), state=state).returncode == 0
    assert "there already" in call("pipeline", "init", str(path), state=state).stderr
    topics.create_named("lines", 2)
    topics.create_named("word-counts", 1)
    topics.send("lines", ["to be or", "not to be"])
    checked = call("pipeline", "validate", str(path), "--quick", state=state)
    assert checked.stdout.split() == [
        "source",
        "lines",
        "view",
        "words",
        "flow",
        "word_count",
        "valid",
    ]

    servers = ("--bootstrap-server", topics.bootstrap_servers)
    done = call(
        "pipeline", "run", str(path), "--available-now", "--json", *servers, *QUICK, state=state
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("pipeline words: Spark's log is ")
    assert lines[-1] == "words: finished"
    report = json.loads(lines[-2])["flows"]["word_count"]
    assert report["lag"] == 0
    assert report["state_rows"] == 4
    assert "WARN" not in done.stdout + done.stderr, "Spark's noise belongs into its log"
    assert newest_counts(topics) == {"to": 2, "be": 2, "or": 1, "not": 1}

    process = start(path, topics, state, "--progress-interval", "0.2")
    try:
        topics.send("lines", ["to sleep"])
        eventually(lambda: newest_counts(topics).get("to") == 3, "it does not go on where it was")
        listed = json.loads(call("pipeline", "list", "--output", "json", state=state).stdout)
        assert [(each["name"], each["state"]) for each in listed] == [("words", "running")]
        again = call("pipeline", "run", str(path), *servers, *QUICK, state=state)
        assert "is run by process" in again.stderr
        stopped = call("pipeline", "stop", "words", state=state)
        assert stopped.stdout == "words: stopped\n", stopped.stderr
        output, _ = process.communicate(timeout=30)
        assert process.returncode == 0
        assert "rows/s" in output
    finally:
        kill(process)
    status = call("pipeline", "status", "words", state=state).stdout
    assert status.startswith("words: stopped")
    assert "word_count" in status
    assert "does not run" in call("pipeline", "stop", "words", state=state).stderr

    asked = call(
        "sql",
        "select value, offset from topic(lines) order by value",
        *servers,
        "--master",
        "local[2]",
        state=state,
    )
    assert asked.returncode == 0, asked.stderr
    assert [line.split(" | ")[0].strip() for line in asked.stdout.splitlines()[2:]] == [
        "not to be",
        "to be or",
        "to sleep",
    ]
    assert "lines: offsets " in asked.stderr
    query = "select word, max(`count`) as n from topic('word-counts') group by word having n > 2"
    found = json.loads(
        call("sql", query, *servers, "--output", "json", "--master", "local[2]", state=state).stdout
    )
    assert found["rows"] == [{"word": "to", "n": 3}]
    assert found["covered"][0]["topic"] == "word-counts"


def test_mistakes_are_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    told = call("pipeline", "validate", str(path), "--quick", state=tmp_path)
    assert told.returncode == 1
    assert told.stderr.splitlines()[0] == (
        "headrace pipeline validate: copy wants 'linse', which is no source and no view; there are: lines"
    )
    assert "no file" in call("pipeline", "run", str(tmp_path / "none.py"), state=tmp_path).stderr
    assert "no command 'rnu'" in call("pipeline", "rnu", state=tmp_path).stderr
