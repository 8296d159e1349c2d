"""The runner as a user meets it: init, validate, run, list, status, stop, again."""

import json
from pathlib import Path

import pytest

from headrace.ids import TopicPartition
from headrace.pipelines.dead_letters import letter_headers
from tests.pipelines.pipeline_process import QUICK, call, kill, start
from tests.pipelines.queries import eventually
from tests.support.spark_topics import Topics

BROKEN = """
from headrace.pipelines.pipeline import flow, source, topic
source("lines", topic("lines", valueFormat="string"))

@flow(into=topic("out"))
def copy({argument}):
    return {argument}.select("{column}")
"""


def newest_counts(topics: Topics) -> dict[str, int]:
    found = (json.loads(value or b"") for value in topics.values("word-counts"))
    return {each["word"]: each["count"] for each in found}


@pytest.mark.timeout(900)
def test_a_pipeline_from_its_first_line_to_its_stop(own_topics: Topics, tmp_path: Path) -> None:
    path, state = tmp_path / "words.py", tmp_path / "state"
    assert call("pipeline", "init", str(path), state=state).returncode == 0
    assert "there already" in call("pipeline", "init", str(path), state=state).stderr
    own_topics.create_named("lines", 2)
    own_topics.create_named("word-counts", 1)
    own_topics.send("lines", ["to be or", "not to be"])
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

    servers = ("--bootstrap-server", own_topics.bootstrap_servers)
    once = ("pipeline", "run", str(path), "--available-now", "--json")
    done = call(*once, *servers, *QUICK, state=state)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("pipeline words: Spark's log is ")
    assert lines[-1] == "words: finished"
    report = json.loads(lines[-2])["flows"]["word_count"]
    assert report["lag"] == 0
    assert report["state_rows"] == 4
    assert "WARN" not in done.stdout + done.stderr, "Spark's noise belongs into its log"
    assert newest_counts(own_topics) == {"to": 2, "be": 2, "or": 1, "not": 1}

    process = start(path, own_topics, state, "--progress-interval", "0.2")
    try:
        own_topics.send("lines", ["to sleep"])
        eventually(
            lambda: newest_counts(own_topics).get("to") == 3, "it does not go on where it was"
        )
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


def test_dead_letters_are_sent_back_by_command(own_topics: Topics, tmp_path: Path) -> None:
    for name in ("orders", "dead"):
        own_topics.create_named(name)
    letter = letter_headers((), partition=TopicPartition("orders", 0), offset=3, error="no JSON")
    own_topics.send("dead", ["odd"], key="k", headers=list(letter))
    own_topics.send("dead", ["no letter"])
    redrive = ("pipeline", "redrive", "dead", "--bootstrap-server", own_topics.bootstrap_servers)
    left = "1 left, because they do not say where they come from\n"
    assert call(*redrive, "--dry-run", state=tmp_path).stdout == (
        f"orders: 1 would be sent back\n{left}"
    )
    assert own_topics.read("orders") == []
    assert call(*redrive, state=tmp_path).stdout == f"orders: 1 sent back\n{left}"
    assert call(*redrive, state=tmp_path).stdout == "nothing to send back\n"
    back = own_topics.read("orders")[0]
    assert (back.key, back.value, back.headers) == (b"k", b"odd", (("headrace.attempt", b"1"),))


def test_mistakes_are_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN.format(argument="linse", column="value"))
    told = call("pipeline", "validate", str(path), "--quick", state=tmp_path)
    assert told.returncode == 1
    assert told.stderr.splitlines()[0] == (
        "headrace pipeline validate: copy wants 'linse', which is no source and no view; there are: lines"
    )
    assert "no file" in call("pipeline", "run", str(tmp_path / "none.py"), state=tmp_path).stderr
    assert "no command 'rnu'" in call("pipeline", "rnu", state=tmp_path).stderr
    asked = ("sql", "select 1 from topic(lines)", "--bootstrap-server", "127.0.0.1:1")
    assert "cannot reach a broker" in call(*asked, state=tmp_path).stderr
    assert not (tmp_path / "sql.log").exists(), "that can be told before Spark is started"


def test_why_spark_does_not_start_is_told_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "fine.py"
    path.write_text(BROKEN.format(argument="lines", column="value"))
    validate = ("pipeline", "validate", str(path))
    told = call(*validate, "--master", "sprak://here", state=tmp_path)
    assert told.stderr.startswith("headrace pipeline validate: Spark did not start: Master must")
    told = call(*validate, "--conf", "spark.driver.memory=much", state=tmp_path)
    assert told.stderr.endswith("Spark did not start: Invalid maximum heap size: -Xmxmuch\n")
    told = call(*validate, state=path)
    assert "cannot be made, where the pipeline would keep its state" in told.stderr
    assert len(told.stderr.splitlines()) == 1, told.stderr


@pytest.mark.timeout(600)
def test_what_only_spark_can_see_is_told_in_a_line_too(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN.format(argument="lines", column="vaule"))
    told = call("pipeline", "validate", str(path), *QUICK, state=tmp_path)
    assert told.returncode == 1
    assert told.stderr.startswith(f"headrace pipeline validate: {path}, line ")
    assert "`vaule` cannot be resolved" in told.stderr
    assert len(told.stderr.splitlines()) == 1, told.stderr
