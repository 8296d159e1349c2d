"""What Confluent's classes say of schemas, recorded: their texts, and for pairs of them the kinds of the differences.

`HEADRACE_RECORD=1` with HEADRACE_CONFLUENT_JARS records anew.
"""

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.registry import avro_corpus, json_corpus, protobuf_corpus
from tests.registry.confluent_checker import Question, verdicts

FOLDER = Path(__file__).with_name("recorded")
REFUSED = ["refused"]
_KIND = re.compile(r"errorType:['\"](\w+)['\"]")

Texts = list[str] | None  # canonical and normalised; None: refused


class Corpus(NamedTuple):
    """Schemas whose texts are compared, and pairs of an older and a newer schema."""

    schema_type: str
    texts: Sequence[str]
    pairs: Sequence[tuple[str, str]]
    policy: str = "STRICT"


class Verdicts(NamedTuple):
    """What was said of a corpus."""

    texts: list[Texts]
    kinds: list[list[str]]  # of each pair


def _squared(schemas: Sequence[Any]) -> list[tuple[str, str]]:
    texts = [each if isinstance(each, str) else json.dumps(each) for each in schemas]
    return list(itertools.product(texts, texts))


def _avro() -> Corpus:
    picked = [*avro_corpus.HAND_PICKED, *avro_corpus.generated(11, 300)]
    pairs = [(json.dumps(old), json.dumps(new)) for old, new in picked]
    both_ways = [*pairs, *((new, old) for old, new in pairs)]
    singles = [*map(json.dumps, avro_corpus.SINGLE), *avro_corpus.TEXTS]
    return Corpus("AVRO", singles, both_ways)


CORPORA = {
    "avro": _avro(),
    "protobuf": Corpus(
        "PROTOBUF", list(protobuf_corpus.TEXTS.values()), _squared(protobuf_corpus.SCHEMAS)
    ),
    "json": Corpus("JSON", json_corpus.TEXTS, _squared(json_corpus.SCHEMAS)),
    "json-lenient": Corpus("JSON", (), _squared(json_corpus.SCHEMAS), "LENIENT"),
    "json-2020": Corpus("JSON", (), _squared(json_corpus.MODERN_SCHEMAS)),
    "json-2020-lenient": Corpus("JSON", (), _squared(json_corpus.MODERN_SCHEMAS), "LENIENT"),
}


def kinds_in(messages: Sequence[str]) -> list[str]:
    """The names of the differences that messages tell of, in alphabetical order."""
    return sorted({match[1] for each in messages for match in _KIND.finditer(each)})


def confluents(corpus: Corpus) -> Verdicts:
    """What the classes say now."""
    common = {"type": corpus.schema_type, "level": "BACKWARD", "policy": corpus.policy}
    asked: list[Question] = [{**common, "new": text} for text in corpus.texts]
    asked += [{**common, "old": old, "new": new} for old, new in corpus.pairs]
    answers = verdicts(asked)
    texts, others = answers[: len(corpus.texts)], answers[len(corpus.texts) :]
    return Verdicts(
        [None if "error" in each else [each["canonical"], each["normalized"]] for each in texts],
        [REFUSED if "error" in each else kinds_in(each["messages"]) for each in others],
    )


def save(name: str, found: Verdicts) -> None:
    """Record verdicts; most pairs have the same differences as others."""
    sets = sorted(map(list, {tuple(each) for each in found.kinds}))
    content = {
        "texts": found.texts,
        "sets": sets,
        "pairs": [sets.index(each) for each in found.kinds],
    }
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    for mark in ('"sets":', '"pairs":'):
        text = text.replace(mark, f"\n{mark}")
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def load(name: str) -> Verdicts:
    """The recorded verdicts."""
    content = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Verdicts(content["texts"], [content["sets"][index] for index in content["pairs"]])
