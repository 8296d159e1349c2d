"""Confluent's own classes, from its jars: HEADRACE_CONFLUENT_JARS names directories with them, in the order of the class path.

The recorded verdicts are those of version 8.5: `kafka-schema-registry-client`, `kafka-protobuf-provider` and
`kafka-json-schema-provider` with their dependencies. Earlier versions lack some rules.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

JARS = os.environ.get("HEADRACE_CONFLUENT_JARS")

needs_jars = pytest.mark.skipif(JARS is None, reason="HEADRACE_CONFLUENT_JARS names no directory")

Question = dict[str, Any]


def verdicts(questions: list[Question]) -> list[dict[str, Any]]:
    """What Confluent's classes answer, one answer for each question."""
    jars = [
        str(jar)
        for directory in str(JARS).split(os.pathsep)
        for jar in sorted(Path(directory).glob("*.jar"))
    ]
    program = str(Path(__file__).with_name("ConfluentVerdicts.java"))
    done = subprocess.run(
        ["java", "-cp", os.pathsep.join(jars), program],
        input="\n".join(map(json.dumps, questions)),
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    lines = [line[2:] for line in done.stdout.split("\n") if line.startswith("@@")]
    assert len(lines) == len(questions), done.stderr
    return [json.loads(line) for line in lines]
