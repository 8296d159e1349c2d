"""Runs a pipeline: owns the session, starts its flows, tells how they go, and stops them between batches.

A rim module. A flow that fails ends the run, because a pipeline of which a part stands still is worse than one that is down.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headrace.client.admin.admin import Admin
from headrace.client.admin.partitions import OffsetSpec, list_offsets
from headrace.errors import HeadraceError
from headrace.ids import TopicPartition
from headrace.pipelines.definitions.pipeline_file import (
    check,
    dead_letter_topics,
    load,
    require_file,
)
from headrace.pipelines.runs.datasets import Datasets
from headrace.pipelines.runs.progress_report import flow_report, report_line
from headrace.pipelines.runs.run_state import RunState
from headrace.pipelines.spark.errors import first_words, java_told
from headrace.pipelines.spark_session import start_session
from headrace.wire.refusal import Refusal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from headrace.pipelines.pipeline import Definitions

_POLL_S: Final = 0.1
_STOP_BETWEEN_BATCHES_S: Final = 10.0


class FlowFailed(HeadraceError):
    """A query of the pipeline ended with an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a pipeline is run."""

    path: Path
    state: RunState
    bootstrap_servers: str
    schema_registry: str = ""
    master: str = "local[*]"
    available_now: bool = False
    as_json: bool = False
    progress_s: float = 5.0
    settings: Mapping[str, str] = field(default_factory=dict)


def validate(options: RunOptions, *, with_spark: bool) -> Definitions:
    """Check a pipeline's file; with Spark, build its DataFrames too. Raises what is wrong."""
    if not with_spark:
        definitions = load(options.path)
        _check(definitions, options)
        return definitions
    require_file(options.path)
    with _session(options) as spark:
        definitions = load(options.path, variables={"spark": spark})
        _check(definitions, options)
        datasets = _datasets(spark, definitions, options)
        datasets.register_views()
        for flow in definitions.flows.values():
            datasets.frame_of(flow)
    return definitions


def run(options: RunOptions, *, say: Callable[[str], None]) -> str:
    """Run a pipeline until it is done or told to stop; how it ended.

    Raises FlowFailed and what is wrong with the file, and KeyboardInterrupt once a Ctrl-C was obeyed.
    """
    require_file(options.path)
    state = options.state
    state.begin(file=str(options.path.resolve()), master=options.master)
    say(
        f"pipeline {state.name}: Spark's log is {state.log_file}, checkpoints are under {state.directory}"
    )
    outcome, stop = "failed", _Stop()
    try:
        # Spark takes Ctrl-C for itself when it starts, so ours comes after it; until then there is no batch to be ended.
        with (
            _ended_by(signal.SIGTERM),
            _session(options) as spark,
            _told_to_stop(stop, signal.SIGTERM),
            _told_to_stop(stop, signal.SIGINT),
        ):
            outcome = _run_flows(spark, options, stop, say)
    except KeyboardInterrupt:
        outcome = "stopped"
        raise
    except _StoppedAtStart:
        outcome = "stopped"
    finally:
        state.end(outcome)
    if stop.signal_number == signal.SIGINT:
        raise KeyboardInterrupt
    return outcome


def _run_flows(
    spark: SparkSession, options: RunOptions, stop: _Stop, say: Callable[[str], None]
) -> str:
    definitions = load(options.path, variables={"spark": spark})
    _check(definitions, options)
    batches = [flow for flow in definitions.flows.values() if flow.is_batch]
    if batches and not options.available_now:
        names = ", ".join(flow.name for flow in batches)
        raise FlowFailed(
            f"{names}: computed as a whole, which only a run with --available-now does"
        )
    datasets = _datasets(spark, definitions, options)
    datasets.register_views()
    queries = {
        flow.name: datasets.start(flow, available_now=options.available_now)
        for flow in definitions.flows.values()
        if not flow.is_batch
    }
    say(f"running: {', '.join(queries)}")
    report = _Report(options, definitions, say)
    try:
        while not stop.asked and any(query.isActive for query in queries.values()):
            report.look(queries)
            time.sleep(_POLL_S)
            _raise_failure(queries)
        if stop.asked:
            say("stopping between batches")
            _stop_between_batches(queries)
        _raise_failure(queries)
        report.look(queries, at_the_end=True)
    finally:
        for query in queries.values():
            query.stop()
    if stop.asked:
        return "stopped"
    for flow in batches:
        datasets.compute(flow)
        say(f"computed: {flow.name}")
    return "finished"


def _check(definitions: Definitions, options: RunOptions) -> None:
    check(
        definitions,
        bootstrap_servers=options.bootstrap_servers,
        schema_registry=options.schema_registry,
    )


def _datasets(spark: SparkSession, definitions: Definitions, options: RunOptions) -> Datasets:
    return Datasets(
        spark,
        definitions,
        bootstrap_servers=options.bootstrap_servers,
        directory=options.state.directory,
        schema_registry=options.schema_registry,
    )


@contextmanager
def _session(options: RunOptions) -> Iterator[SparkSession]:
    state = options.state
    state.make_directory()
    settings = {
        "spark.sql.warehouse.dir": str(state.directory / "warehouse"),
        "headrace.bootstrap.servers": options.bootstrap_servers,
        **options.settings,
    }
    spark = start_session(
        state.name, master=options.master, settings=settings, log_file=state.log_file
    )
    try:
        with java_told():
            yield spark
    finally:
        spark.stop()


@dataclass(slots=True)
class _Stop:
    signal_number: int = 0

    @property
    def asked(self) -> bool:
        return self.signal_number != 0


class _StoppedAtStart(BaseException):
    """A signal came before there was a session: nothing is to be brought to an end first."""


@contextmanager
def _ended_by(number: signal.Signals) -> Iterator[None]:
    def end(_number: int, _frame: object) -> None:
        raise _StoppedAtStart

    before = signal.signal(number, end)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def _told_to_stop(stop: _Stop, number: signal.Signals) -> Iterator[None]:
    """The signal asks for a stop; a second one is no request any more."""

    def ask(number: int, _frame: object) -> None:
        if stop.asked:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.signal_number = number

    before = signal.signal(number, ask)
    try:
        yield
    finally:
        signal.signal(number, before)


def _stop_between_batches(queries: Mapping[str, StreamingQuery]) -> None:
    """Stop each query at a moment when it runs no batch, so that nothing has to be done twice."""
    deadline = time.monotonic() + _STOP_BETWEEN_BATCHES_S
    left = dict(queries)
    while left and time.monotonic() < deadline:
        for name, query in list(left.items()):
            if not query.isActive or not query.status["isTriggerActive"]:
                query.stop()
                del left[name]
        time.sleep(0.005)


def _raise_failure(queries: Mapping[str, StreamingQuery]) -> None:
    for name, query in queries.items():
        error = query.exception()
        if error is not None:
            raise FlowFailed(f"flow {name} failed: {first_words(str(error))}")


class _Report:
    """Tells how the flows go: to the terminal now and then, to the state directory always."""

    def __init__(
        self, options: RunOptions, definitions: Definitions, say: Callable[[str], None]
    ) -> None:
        self._options = options
        self._say = say
        self._dead_letter_topics = dead_letter_topics(definitions)
        self._told: dict[str, Any] = {}
        self._next_s = 0.0

    def look(self, queries: Mapping[str, StreamingQuery], *, at_the_end: bool = False) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s and not at_the_end:
            return
        self._next_s = now_s + self._options.progress_s
        flows = {}
        for name, query in queries.items():
            progress = query.lastProgress
            if progress is not None:
                flows[name] = flow_report(json.loads(progress.json))
        if not flows:
            return
        found = {"flows": flows, "dead_letters": self._dead_letters()}
        self._options.state.report(found)
        if found != self._told:
            self._told = found
            self._tell(found)

    def _tell(self, found: dict[str, Any]) -> None:
        if self._options.as_json:
            self._say(json.dumps(found))
            return
        for name, report in found["flows"].items():
            self._say(report_line(name, report))
        for topic, count in found["dead_letters"].items():
            if count:
                self._say(f"{topic}: {count:,} dead letters")

    def _dead_letters(self) -> dict[str, int]:
        """How many records wait in each dead-letter topic."""
        if not self._dead_letter_topics:
            return {}
        try:
            with Admin(self._options.bootstrap_servers, timeout_s=5) as admin:
                return {topic: count_records(admin, topic) for topic in self._dead_letter_topics}
        except HeadraceError:
            return {}


def count_records(admin: Admin, topic: str) -> int:
    """How many offsets a topic holds; 0 where there is no such topic."""
    partitions = [
        TopicPartition(topic, each.partition_index)
        for found in admin.metadata([topic]).topics
        for each in found.partitions
    ]
    total = 0
    for sign, spec in ((1, OffsetSpec.LATEST), (-1, OffsetSpec.EARLIEST)):
        for place in list_offsets(admin, partitions, spec).values():
            total += 0 if isinstance(place, Refusal) else sign * place.offset
    return total
