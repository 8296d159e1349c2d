"""A pipeline's file: what it defines, and what is told of mistakes before Spark is asked for anything."""

from pathlib import Path

import pytest

from headrace.pipelines.definitions.pipeline_file import (
    check,
    dead_letter_topics,
    inputs_of,
    letter_writers,
    load,
    sink_options,
    source_options,
    sources_of,
)
from headrace.pipelines.options.known_options import OptionError
from headrace.pipelines.pipeline import DefinitionError, Definitions, Table, Topic

HEAD = (
    "from headrace.pipelines.pipeline import *\nfrom headrace.pipelines.pipeline import sql_view\n"
)
LINES = 'source("lines", topic("lines", valueFormat="string", failOnDataLoss=False))\n'
COPY = '@flow(into=topic("copies", key="k"))\ndef copy(lines): ...\n'


def loaded(tmp_path: Path, text: str) -> Definitions:
    path = tmp_path / "pipeline.py"
    path.write_text(HEAD + text)
    return load(path)


def complaint(tmp_path: Path, text: str) -> str:
    with pytest.raises((DefinitionError, OptionError)) as refused:
        check(loaded(tmp_path, text), bootstrap_servers="localhost:9092")
    return str(refused.value)


def test_what_a_file_defines(tmp_path: Path) -> None:
    text = '@view\ndef words(lines, spark): ...\nsql_flow("all", "SELECT * FROM words, lines", into=table("t"))\n'
    found = loaded(tmp_path, LINES + COPY + text)
    check(found, bootstrap_servers="localhost:9092")
    assert found.sources["lines"].dataset == Topic(
        name="lines", options={"valueFormat": "string", "failOnDataLoss": "false"}
    )
    assert inputs_of(found.views["words"], found) == ["lines"]
    assert found.flows["all"].into == Table(name="t")
    assert inputs_of(found.flows["all"], found) == ["words", "lines"]
    assert found.flows["copy"].mode == "append"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "defines no flow"),
        ("flow(into=", "pipeline.py, line 3: SyntaxError: '(' was never closed"),
        ("\nsource(lines)", "pipeline.py, line 4: NameError: name 'lines' is not defined"),
        ("topic(nmae=1)", "pipeline.py, line 3: TypeError: topic() missing 1 required"),
        ('raise ValueError("no good")', "pipeline.py, line 3: ValueError: no good"),
        (LINES + LINES + COPY, "'lines' is defined twice"),
        (COPY, "copy wants 'lines', which is no source and no view; there are: none"),
        (LINES.replace("valueFormat", "valueFromat") + COPY, "did you mean 'valueFormat'?"),
        (LINES + COPY.replace("key=", "subscribe="), "subscribe does not apply to a sink"),
        (LINES + COPY + "@view\ndef a(b): ...\n@view\ndef b(a): ...\n", "a circle: a -> b -> a"),
        (LINES + COPY + 'sql_view("v", "SELECT * FROM w")\nsql_view("w", "TABLE v")\n', "a circle"),
        ('source("lines", files("x", format="csv"))\n' + COPY, "a stream of files needs schema="),
        ('source("lines", files("x"), as_table=True)\n' + COPY, "as_table is for topics"),
        ('source("lines", database("sqlite:///x", "t"))\n' + COPY, "schema= and version="),
        (LINES + COPY.replace('topic("copies", key="k")', 'files("x"), mode="update"'), "append"),
        (LINES + COPY.replace('topic("copies", key="k")', 'database("sqlite:///x", "t")'), "keys="),
        (LINES + COPY.replace('topic("copies", key="k")', 'table("t"), mode="uppdate"'), "a mode"),
        ('source("lines", files("x", format="xls"))\n' + COPY, "files can be parquet"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, words: str) -> None:
    assert words in complaint(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="there is no file"):
        load(tmp_path / "none.py")


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "picture.py"
    path.write_bytes(b"\x89PNG\xff")
    with pytest.raises(DefinitionError, match="cannot be read as Python"):
        load(path)


def test_a_file_that_is_imported_defines_nothing_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(HEAD + LINES + COPY)
    import runpy

    runpy.run_path(str(tmp_path / "other.py"))
    assert list(loaded(tmp_path, LINES + COPY).flows) == ["copy"]


def test_topics_of_dead_letters_are_known(tmp_path: Path) -> None:
    options = 'onDecodeError="deadLetterTopic", deadLetterTopic="dead"'
    found = loaded(tmp_path, f'source("lines", topic("lines", {options}))\n' + COPY)
    assert dead_letter_topics(found) == ["dead"]


LETTERED = (
    'source("lines", topic("lines", valueFormat="json", valueSchema="id INT",'
    ' onDecodeError="deadLetterTopic", deadLetterTopic="dead"))\n'
    "@view\ndef ids(lines): ...\n"
)


def test_one_flow_writes_the_dead_letters_of_a_source(tmp_path: Path) -> None:
    flows = (
        '@flow(into=table("t"))\ndef one(ids): ...\n@flow(into=table("u"))\ndef two(lines): ...\n'
    )
    found = loaded(tmp_path, LETTERED + 'source("other", topic("other"))\n' + flows)
    assert sources_of(found.flows["one"], found) == {"lines"}
    assert letter_writers(found, {}) == {"lines": "one"}
    assert letter_writers(found, {"lines": "two"}) == {"lines": "two"}, "it stays with its flow"
    assert letter_writers(found, {"lines": "gone"}) == {"lines": "one"}


def test_a_source_that_is_read_again_and_again_writes_no_dead_letters(tmp_path: Path) -> None:
    text = LETTERED.replace('"dead"))', '"dead"), as_table=True)')
    assert "is read anew for every batch" in complaint(tmp_path, text + COPY)


EXACTLY = {"deliveryGuarantee": "exactly-once"}


@pytest.mark.parametrize(
    ("into", "source", "expected"),
    [
        ('topic("copies")', LINES, EXACTLY),
        ('topic("copies", deliveryGuarantee="at-least-once")', LINES, {}),
        ('topic("copies", **{"kafka.acks": "1"})', LINES, {}),
        ('topic("copies")', 'source("lines", files("/in", format="text"))\n', {}),
        ('files("/out", format="json")', LINES, {}),
    ],
)
def test_from_topics_to_a_topic_is_exactly_once_unless_the_file_chooses(
    tmp_path: Path, into: str, source: str, expected: dict[str, str]
) -> None:
    found = loaded(tmp_path, source + f"@flow(into={into})\ndef copy(lines): ...\n")
    assert sink_options(found.flows["copy"], found) == expected


def test_topics_are_read_committed_unless_the_file_chooses() -> None:
    assert source_options(Topic(name="t", options={})) == {
        "kafka.isolation.level": "read_committed"
    }
    chosen = {"Kafka.Isolation.Level": "read_uncommitted"}
    assert source_options(Topic(name="t", options=chosen)) == {}
