"""Avro's verdicts and canonical texts beside those of Confluent's own CompatibilityChecker."""

import json
import os
from typing import Any

from headrace.registry.judge import EarlierText, Question, SchemaText, judge
from tests.registry.avro_corpus import HAND_PICKED, LEVELS, SINGLE, generated
from tests.registry.confluent_checker import needs_jars, verdicts

GENERATED = int(os.environ.get("HEADRACE_VERDICT_PAIRS", "300"))


def questions() -> list[dict[str, Any]]:
    pairs = [*HAND_PICKED, *generated(11, GENERATED)]
    asked = [
        {"level": level, "old": [json.dumps(old)], "new": json.dumps(new)}
        for old, new in pairs
        for level in LEVELS
    ]
    return asked + [{"level": "NONE", "old": [], "new": json.dumps(each)} for each in SINGLE]


def ours(asked: dict[str, Any]) -> tuple[bool, str | None, bool | None]:
    earlier = tuple(
        EarlierText(number, SchemaText("AVRO", text)) for number, text in enumerate(asked["old"], 1)
    )
    found = judge(Question(SchemaText("AVRO", asked["new"]), asked["level"], earlier))
    if found.error is not None:
        return False, None, None
    return True, found.canonical, not found.incompatibilities


@needs_jars
def test_verdicts_are_confluents() -> None:
    asked = questions()
    different = []
    for question, answer in zip(asked, verdicts("AvroVerdicts.java", asked), strict=True):
        expected = ("error" not in answer, answer.get("canonical"), answer.get("compatible"))
        if "error" in answer:
            expected = (False, None, None)
        if ours(question) != expected:
            different.append((question, expected, ours(question)))
    assert different == []
