"""Spark through format("headrace") against Spark's own Kafka connector: the same topic, the same session, in turns.

Both read and write one Headrace broker. Records have 100 bytes and no key; what is read goes to Spark's noop sink. Rates are
the best of the turns, because the machine's other work only ever makes a turn slower. Micro-batches from topic to topic are also
held against the floor: rows of `format("headrace")` into a sink in Python that does nothing (`bench.spark.empty_sink`). It runs in
the same Python processes, so it profits from what our sink does for these.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from bench.report import Line, Report
from bench.spark.empty_sink import EmptySink
from headrace.pipelines.spark_session import make_active, start_session
from tests.support.headrace_process import HeadraceProcess
from tests.support.spark_kafka import find_jars

RECORDS = 1_000_000  # in each of two partitions
WRITTEN = 500_000
VALUE = b"x" * 100
TURNS = 4
STREAM_TURNS = 4
STREAM_BATCHES = 90  # Spark remembers a hundred
STREAM_S = 60.0  # or as many as there are by then
FORMATS = ("headrace", "kafka")
FLOOR = "floor"
EXACTLY_ONCE = "headrace exactly-once"
# Of a micro-batch, as Spark's progress names them: asking for the newest offsets, writing the offset log, planning tasks, the
# query's plan, running it, writing the commit log.
WHOLE = "triggerExecution"
PARTS = ("latestOffset", "walCommit", "getBatch", "queryPlanning", "addBatch", "commitOffsets")


def run() -> Report:
    """All of it; about ten minutes."""
    report = Report("pipeline: Spark with format('headrace') against Spark's own Kafka connector")
    jars = ",".join(str(jar) for jar in find_jars())
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as scratch:
        directory = Path(scratch)
        with HeadraceProcess(directory / "broker") as broker:
            servers = f"127.0.0.1:{broker.port}"
            _fill(servers)
            spark = start_session(
                "bench",
                master="local[2]",
                settings={"spark.jars": jars, "spark.driver.memory": "2g"},
                log_file=directory / "spark.log",
            )
            try:
                report.lines.append(_reading(spark, servers, (0,), at_least=2.0))
                report.lines.append(_reading(spark, servers, (0, 1), at_least=2.0))
                report.lines.append(_writing(spark, servers, tasks=1, at_least=1.0))
                report.lines.append(_writing(spark, servers, tasks=2, at_least=1.0))
                spark.dataSource.register(EmptySink)
                for into_topic in (False, True):
                    report.lines += _micro_batches(spark, servers, directory, into_topic=into_topic)
            finally:
                spark.stop()
    return report


def _fill(servers: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    made = admin.create_topics(
        [
            NewTopic(name, 2, 1)
            for name in (
                "records",
                "written-headrace",
                "written-kafka",
                f"written-{EXACTLY_ONCE.replace(' ', '-')}",
                "trickle",
            )
        ]
    )
    for future in made.values():
        future.result()
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": 1_000_000}
    )
    for partition in (0, 1):
        for number in range(RECORDS):
            producer.produce("records", VALUE, partition=partition)
            if number % 10_000 == 0:
                producer.poll(0)
        producer.flush()


def _best(turns: dict[str, Callable[[], Any]], rows: int) -> dict[str, float]:
    """Rows per second of each format, the best of alternating turns; the first turn of each warms it up."""
    best = dict.fromkeys(turns, 0.0)
    for turn in range(TURNS + 1):
        for name, work in turns.items():
            began = time.perf_counter()
            work()
            rate = rows / (time.perf_counter() - began)
            if turn:
                best[name] = max(best[name], rate)
    return best


def _ratio(what: str, best: dict[str, float], at_least: float) -> Line:
    detail = ", ".join(f"{name} {rate / 1e6:.2f} M rows/s" for name, rate in best.items())
    return Line(what=what, value=best["headrace"] / best["kafka"], at_least=at_least, detail=detail)


def _reading(
    spark: SparkSession, servers: str, partitions: tuple[int, ...], *, at_least: float
) -> Line:
    def frame(name: str) -> DataFrame:
        reader = spark.read.format(name).option("kafka.bootstrap.servers", servers)
        return reader.option("assign", json.dumps({"records": list(partitions)})).load()

    turns = {name: _noop(frame(name)) for name in FORMATS}
    best = _best(turns, RECORDS * len(partitions))
    return _ratio(f"read 100-byte records, {len(partitions)} task(s)", best, at_least)


def _noop(frame: DataFrame) -> Callable[[], None]:
    return lambda: frame.write.format("noop").mode("overwrite").save()


def _writing(spark: SparkSession, servers: str, *, tasks: int, at_least: float) -> Line:
    rows = spark.range(0, WRITTEN, 1, tasks).selectExpr("repeat('x', 100) as value")

    def write(name: str) -> Callable[[], None]:
        writer = rows.write.format(name).mode("append").option("kafka.bootstrap.servers", servers)
        return lambda: writer.option("topic", f"written-{name}").save()

    best = _best({name: write(name) for name in FORMATS}, WRITTEN)
    return _ratio(f"write 100-byte records, {tasks} task(s)", best, at_least)


def _micro_batches(
    spark: SparkSession, servers: str, directory: Path, *, into_topic: bool
) -> list[Line]:
    """Batches of a few records each, as fast as they go, and what Spark says their time is made of.

    The queries run in turns, because a shared machine is fast in one minute and slow in the next. Each ratio is the median
    of those of the turns; the first turn of each warms Java up.
    """
    names = (*FORMATS, EXACTLY_ONCE, FLOOR) if into_topic else FORMATS
    turns: list[dict[str, dict[str, float]]] = []
    with _trickle(servers):
        for turn in range(STREAM_TURNS + 1):
            order = names if turn % 2 else names[::-1]
            query = partial(_query, spark, servers, directory, into_topic=into_topic)
            turns.append({name: _batch_ms(query(name)) for name in order})
    middle = {
        name: {part: median(turn[name][part] for turn in turns[1:]) for part in (WHOLE, *PARTS)}
        for name in names
    }
    detail = "; ".join(
        f"{name} {parts[WHOLE]:.0f} ms ("
        + ", ".join(f"{part} {parts[part]:.0f}" for part in PARTS)
        + ")"
        for name, parts in middle.items()
    )
    where = "from topic to topic" if into_topic else "read only"
    what = f"streaming micro-batch, p50, {where}"
    lines = [_turns_line(what, turns[1:], beside="kafka", at_most=1.1, detail=f"{detail}; ")]
    if into_topic:
        lines.append(_turns_line(f"{what}, beside the floor", turns[1:], beside=FLOOR))
        exact = f"{what}, exactly once beside at least once"
        lines.append(_turns_line(exact, turns[1:], of=EXACTLY_ONCE, beside="headrace", at_most=1.3))
    return lines


def _turns_line(
    what: str,
    turns: list[dict[str, dict[str, float]]],
    *,
    beside: str,
    of: str = "headrace",
    at_most: float | None = None,
    detail: str = "",
) -> Line:
    ratios = [turn[of][WHOLE] / turn[beside][WHOLE] for turn in turns]
    return Line(
        what=what,
        value=median(ratios),
        at_most=at_most,
        detail=f"{detail}turns {min(ratios):.2f} to {max(ratios):.2f}",
    )


@contextmanager
def _trickle(servers: str) -> Iterator[None]:
    """A record every ten milliseconds or so."""
    ended = threading.Event()

    def trickle() -> None:
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        while not ended.is_set():
            producer.produce("trickle", VALUE)
            producer.flush()
            time.sleep(0.01)

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _query(
    spark: SparkSession, servers: str, directory: Path, name: str, *, into_topic: bool
) -> StreamingQuery:
    source = name if name in FORMATS else "headrace"
    target = "headrace" if name == EXACTLY_ONCE else name
    reader = spark.readStream.format(source).option("kafka.bootstrap.servers", servers)
    rows = reader.option("subscribe", "trickle").load().select("value")
    checkpoint = str(directory / f"checkpoint-{name.replace(' ', '-')}-{into_topic}")
    if not into_topic:
        writer = rows.writeStream.format("noop")
    else:
        make_active(spark)
        writer = rows.writeStream.format(target).option("kafka.bootstrap.servers", servers)
        writer = writer.option("topic", f"written-{name.replace(' ', '-')}")
        if name == EXACTLY_ONCE:
            writer = writer.option("deliveryGuarantee", "exactly-once")
    return writer.option("checkpointLocation", checkpoint).start()


def _batch_ms(query: StreamingQuery) -> dict[str, float]:
    """The median of each part of a batch of a query, which is stopped then."""
    try:
        began = time.monotonic()
        while len(_batches(query)) < STREAM_BATCHES and time.monotonic() < began + STREAM_S:
            time.sleep(0.5)
        found = _batches(query)
    finally:
        query.stop()
    warm = found[len(found) // 3 :]
    return {part: float(median(each.get(part, 0) for each in warm)) for part in (WHOLE, *PARTS)}


def _batches(query: StreamingQuery) -> list[dict[str, int]]:
    return [each.durationMs for each in query.recentProgress if each.numInputRows]
