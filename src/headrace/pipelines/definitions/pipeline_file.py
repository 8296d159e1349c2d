"""Loads a pipeline's file and checks what it says, before Spark is asked for anything.

Files with the decorators of Spark Declarative Pipelines are loaded too (`sdp_definitions`). The file's own code runs here.
"""

from __future__ import annotations

import re
import runpy
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace.pipelines.databases.tables import default_settle
from headrace.pipelines.options.known_options import SINK_OPTIONS, checked, duration_ms
from headrace.pipelines.options.schema_options import SCHEMA_FORMATS, parse_formats
from headrace.pipelines.options.sink_options import EXACTLY_ONCE
from headrace.pipelines.options.source_options import parse_source_options
from headrace.pipelines.pipeline import (
    SQL,
    Database,
    Dataset,
    DefinitionError,
    Definitions,
    Files,
    Flow,
    Source,
    SparkFormat,
    Topic,
    View,
    collecting,
)
from headrace.pipelines.spark.errors import first_words, thrown_by_java

_SDP = re.compile(r"pyspark\.pipelines|from pyspark import .*\bpipelines\b")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
SPARK = "spark"  # an argument of this name is the session
_ISOLATION_LEVEL = "kafka.isolation.level"
# Who asks for one of these has chosen: records of a writer without acknowledgements or sequences cannot be exact.
_GUARANTEES = ("deliveryGuarantee", "kafka.acks", "kafka.enable.idempotence")


def require_file(path: Path) -> None:
    """Raises DefinitionError where there is no such file: that can be told before Spark is started."""
    if not path.is_file():
        raise DefinitionError(f"there is no file {path}")


def load(path: Path, *, variables: Mapping[str, Any] | None = None) -> Definitions:
    """What a file defines. Raises DefinitionError. `variables` are put into the file's namespace."""
    require_file(path)
    given = dict(variables or {})
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DefinitionError(f"{path} cannot be read as Python: {error}") from error
    with collecting() as found:
        if _SDP.search(text):
            from headrace.pipelines.definitions.sdp_definitions import collecting_sdp

            with collecting_sdp(found):
                _run(path, given)
        else:
            _run(path, given)
    if not found.flows:
        raise DefinitionError(f"{path} defines no flow: nothing would be written")
    return found


def _run(path: Path, variables: dict[str, Any]) -> None:
    with slips_told(str(path), otherwise=str(path)):
        runpy.run_path(str(path), init_globals=variables)


@contextmanager
def slips_told(path: str, *, otherwise: str) -> Iterator[None]:
    """Whatever goes wrong in a pipeline's own code is a DefinitionError that names its line in the file, or something else."""
    try:
        yield
    except HeadraceError:
        raise
    except Exception as error:
        line = _line(error, path)
        place = f"{path}, line {line}" if line is not None else otherwise
        raise DefinitionError(f"{place}: {_words(error)}") from error


def _line(error: Exception, path: str) -> int | None:
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == path), None)


def _words(error: Exception) -> str:
    if type(error).__module__.startswith("pyspark."):
        return first_words(str(error))
    said = error.msg if isinstance(error, SyntaxError) else thrown_by_java(str(error)) or str(error)
    return f"{type(error).__name__}: {said}"


def check(definitions: Definitions, *, bootstrap_servers: str, schema_registry: str = "") -> None:
    """Raises DefinitionError or OptionError for names that lead nowhere and options that make no sense."""
    known = {*definitions.sources, *definitions.views}
    items: list[View | Flow] = [*definitions.views.values(), *definitions.flows.values()]
    for item in items:
        for name in item.inputs:
            if not name.startswith(SQL) and name not in known and name != SPARK:
                there = ", ".join(sorted(known)) or "none"
                raise DefinitionError(
                    f"{item.name} wants '{name}', which is no source and no view; there are: {there}"
                )
    for view in definitions.views.values():
        _check_circle(definitions, view, ())
    for source in definitions.sources.values():
        _check_source(source, bootstrap_servers, schema_registry)
    for flow in definitions.flows.values():
        _check_sink(flow, bootstrap_servers, schema_registry)


def _check_circle(definitions: Definitions, view: View, above: tuple[str, ...]) -> None:
    if view.name in above:
        raise DefinitionError(f"a circle: {' -> '.join((*above, view.name))}")
    for name in inputs_of(view, definitions):
        if name in definitions.views:
            _check_circle(definitions, definitions.views[name], (*above, view.name))


def inputs_of(item: View | Flow, definitions: Definitions) -> list[str]:
    """The sources and views an item is made of; of SQL, those whose names are words in it."""
    known = {*definitions.sources, *definitions.views}
    found: list[str] = []
    for name in item.inputs:
        if name.startswith(SQL):
            found += [word for word in _WORD.findall(name.removeprefix(SQL)) if word in known]
        elif name != SPARK:
            found.append(name)
    return list(dict.fromkeys(each for each in found if each != item.name))


def sources_of(item: View | Flow, definitions: Definitions) -> set[str]:
    """The sources that an item reads, itself or through views."""
    found: set[str] = set()
    for name in inputs_of(item, definitions):
        if name in definitions.sources:
            found.add(name)
        else:
            found |= sources_of(definitions.views[name], definitions)
    return found


def letter_writers(definitions: Definitions, earlier: Mapping[str, str]) -> dict[str, str]:
    """By source with a dead-letter topic, the one flow that writes its dead letters; the others leave the records out.

    Each flow is a query of its own and reads the source again: each would write each letter. `earlier` is the choice of
    the last run; it holds as long as that flow reads the source, because another flow may be further ahead.
    """
    chosen: dict[str, str] = {}
    for name, source in definitions.sources.items():
        flows = [
            flow.name
            for flow in definitions.flows.values()
            if name in sources_of(flow, definitions)
        ]
        if flows and has_dead_letters(source.dataset):
            chosen[name] = earlier[name] if earlier.get(name) in flows else flows[0]
    return chosen


def has_dead_letters(dataset: Dataset) -> bool:
    return any(name.lower() == "deadlettertopic" for name in _options(dataset))


def without_dead_letters(options: Mapping[str, str]) -> dict[str, str]:
    """The options of a topic, so that records which cannot be decoded are left out and not written anywhere."""
    others = {
        name: value
        for name, value in options.items()
        if name.lower() not in ("deadlettertopic", "ondecodeerror")
    }
    return others | {"onDecodeError": "skip"}


def _check_source(source: Source, bootstrap_servers: str, schema_registry: str) -> None:
    dataset = source.dataset
    if has_dead_letters(dataset) and not source.streaming:
        raise DefinitionError(
            f"{source.name} is read anew for every batch, and would write the same dead letters each time:"
            " use onDecodeError=skip or null"
        )
    if isinstance(dataset, Topic):
        options = topic_options(dataset, bootstrap_servers, schema_registry)
        parse_source_options(options | {"subscribe": dataset.name}, streaming=source.streaming)
    elif source.as_table:
        raise DefinitionError(f"{source.name}: as_table is for topics")
    if isinstance(dataset, Database) and (dataset.schema is None or dataset.version is None):
        raise DefinitionError(
            f"{source.name}: to read a database's changes, schema= and version= must be given"
        )
    if isinstance(dataset, Database):
        settle_ms(dataset)
    if (
        isinstance(dataset, Files)
        and source.streaming
        and dataset.schema is None
        and dataset.format != "text"
    ):
        raise DefinitionError(f"{source.name}: a stream of files needs schema=")


def _check_sink(flow: Flow, bootstrap_servers: str, schema_registry: str) -> None:
    if isinstance(flow.into, Topic):
        options = topic_options(flow.into, bootstrap_servers, schema_registry)
        parse_formats(checked(options, SINK_OPTIONS, where="a sink"))
    if isinstance(flow.into, Database) and not flow.into.keys:
        raise DefinitionError(
            f"{flow.name}: rows are written to a database by key: keys= is missing"
        )
    if isinstance(flow.into, Files) and flow.mode != "append":
        raise DefinitionError(
            f"{flow.name}: files can only be appended to, not written in mode {flow.mode}"
        )


def settle_ms(dataset: Database) -> int:
    """How long after it was first seen a version of a database's table is read. Raises OptionError."""
    return duration_ms("settle", dataset.settle or default_settle(dataset.url))


def topic_options(
    dataset: Topic, bootstrap_servers: str, schema_registry: str = ""
) -> dict[str, str]:
    """The options of a topic, with the brokers and the schema registry where it does not name its own."""
    options = {"kafka.bootstrap.servers": bootstrap_servers}
    if schema_registry and has_schemas(dataset):
        options["schemaRegistry"] = schema_registry
    return {**options, **dataset.options}


def source_options(dataset: Topic) -> dict[str, str]:
    """What a pipeline reads topics with where its file says nothing: records of aborted transactions are none."""
    if _has(dataset, _ISOLATION_LEVEL):
        return {}
    return {_ISOLATION_LEVEL: "read_committed"}


def sink_options(flow: Flow, definitions: Definitions) -> dict[str, str]:
    """What a flow writes a topic with where the pipeline's file says nothing: exactly once, from topics to a topic."""
    into = flow.into
    sources = [definitions.sources[name] for name in sources_of(flow, definitions)]
    if not isinstance(into, Topic) or any(_has(into, name) for name in _GUARANTEES):
        return {}
    if not all(isinstance(each.dataset, Topic) for each in sources):
        return {}
    return {"deliveryGuarantee": EXACTLY_ONCE}


def _has(dataset: Topic, option: str) -> bool:
    return option.lower() in (name.lower() for name in dataset.options)


def has_schemas(dataset: Topic, column: str = "") -> bool:
    """Whether keys or values (or just those of `column`) have schemas of a registry."""
    names = [f"{column}Format"] if column else ["keyFormat", "valueFormat"]
    return any(dataset.options.get(name, "").lower() in SCHEMA_FORMATS for name in names)


def dead_letter_topics(definitions: Definitions) -> list[str]:
    """Where the pipeline's sources put what they cannot decode."""
    options = [_options(source.dataset) for source in definitions.sources.values()]
    return sorted({each["deadLetterTopic"] for each in options if "deadLetterTopic" in each})


def _options(dataset: Dataset) -> Mapping[str, str]:
    return dataset.options if isinstance(dataset, Topic | SparkFormat) else {}
