"""Texts and compatibility of schemas beside those of Confluent's own classes, which are recorded for every corpus."""

import os
from collections.abc import Callable
from functools import cache

import pytest

from headrace.registry.judging.judge import FORMATS
from headrace.schemas.formats.json_schema.compatibility import compared
from headrace.schemas.formats.json_schema.differences import COMPATIBLE, INCOMPATIBLE
from headrace.schemas.formats.json_schema.language import JsonSchema
from headrace.schemas.formats.schema_format import InvalidSchema, ParsedSchema
from tests.registry.confluent_checker import needs_jars
from tests.registry.recorded_verdicts import (
    CORPORA,
    REFUSED,
    Corpus,
    Texts,
    confluents,
    kinds_in,
    load,
    save,
)

# Where Headrace's text is another one, for a reason.
OTHER_TEXTS = {
    # Confluent's normalisation takes the default away, or moves a type into another namespace.
    '{"type": "record", "name": "R", "fields": [{"name": "f", "type": ["null", "string"], "default": "x"}]}',
    '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "record", "name": "S", "fields": '
    '[{"name": "x", "type": "int"}], "namespace": ""}}], "namespace": "n"}',
}


def parser(corpus: Corpus) -> Callable[[str], ParsedSchema]:
    @cache
    def parse(text: str) -> ParsedSchema:
        return FORMATS[corpus.schema_type].parse(text, {})

    return parse


def texts_of(parse: Callable[[str], ParsedSchema], text: str) -> Texts:
    try:
        schema = parse(text)
    except InvalidSchema:
        return None
    return [schema.canonical(), schema.normalized()]


@pytest.mark.parametrize("name", CORPORA)
def test_texts_are_confluents(name: str) -> None:
    corpus, parse = CORPORA[name], parser(CORPORA[name])
    for text, expected in zip(corpus.texts, load(name).texts, strict=True):
        found = texts_of(parse, text)
        if text in OTHER_TEXTS:
            assert found is not None
            assert expected is not None
            assert (found[0], found[1] != expected[1]) == (expected[0], True)
        else:
            assert found == expected, text


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", CORPORA)
def test_differences_are_confluents(name: str) -> None:
    corpus, parse = CORPORA[name], parser(CORPORA[name])
    is_lenient = corpus.policy == "LENIENT"
    different = []
    for (old, new), expected in zip(corpus.pairs, load(name).kinds, strict=True):
        if expected == REFUSED:
            continue
        found = parse(new).can_read(parse(old), is_lenient=is_lenient)
        kinds = kinds_in([each.message(reader="new", writer="old") for each in found])
        if kinds != expected:
            different.append((old, new, kinds, expected))
    assert different == []


def test_every_difference_of_json_schemas_occurs() -> None:
    seen: set[str] = set()
    for name in ("json", "json-2020"):
        parse = parser(CORPORA[name])
        for old, new in CORPORA[name].pairs:
            writer, reader = parse(old), parse(new)
            assert isinstance(writer, JsonSchema)
            assert isinstance(reader, JsonSchema)
            seen |= {each.kind for each in compared(reader.document, writer.document)}
    assert (COMPATIBLE | INCOMPATIBLE) - seen == set()


@needs_jars
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", CORPORA)
def test_the_recorded_verdicts_are_confluents(name: str) -> None:
    found = confluents(CORPORA[name])
    if os.environ.get("HEADRACE_RECORD"):
        save(name, found)
    assert found == load(name)
