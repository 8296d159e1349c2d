"""SQL over stored records: `select … from topic(orders)`.

Each `topic(NAME)` becomes a view on the records the topic holds at that moment; which offsets those are is said with the result.
Where all of a sample of values are JSON objects, their fields are columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.pipelines.cluster_offsets import ClusterOffsets
from headrace.pipelines.source_options import parse_source_options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOPIC: Final = re.compile(r"\btopic\(\s*['\"`]?([A-Za-z0-9._-]+)['\"`]?\s*\)", re.IGNORECASE)
_SAMPLE_ROWS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """The offsets of a topic that a query saw: (partition, first, end)."""

    topic: str
    ranges: Sequence[tuple[int, int, int]]

    def __str__(self) -> str:
        parts = [
            f"{number}: {first}-{end - 1}" for number, first, end in self.ranges if end > first
        ]
        return f"{self.topic}: offsets {', '.join(parts)}" if parts else f"{self.topic}: no records"


def with_views(text: str) -> tuple[str, dict[str, str]]:
    """The query with names of views in place of `topic(…)`, and the topic of each view. Pure."""
    views: dict[str, str] = {}

    def name_of(found: re.Match[str]) -> str:
        topic = found[1]
        known = {each: view for view, each in views.items()}
        view = known.get(topic) or f"topic_{len(views)}_{re.sub('[^A-Za-z0-9]', '_', topic)}"
        views[view] = topic
        return view

    return _TOPIC.sub(name_of, text), views


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query, and the offsets it will see, by the name of the view that stands for a topic."""

    plain: str
    bootstrap_servers: str
    views: Mapping[str, Covered]


def question(text: str, *, bootstrap_servers: str) -> Question:
    """Look which records are there. Raises what is wrong with the cluster or a topic's name, which needs no Spark."""
    plain, topics = with_views(text)
    views = {view: _look(topic, bootstrap_servers) for view, topic in topics.items()}
    return Question(plain=plain, bootstrap_servers=bootstrap_servers, views=views)


def answer(spark: SparkSession, asked: Question) -> DataFrame:
    """The result of a query."""
    for view, covered in asked.views.items():
        _topic_frame(spark, covered, asked.bootstrap_servers).createOrReplaceTempView(view)
    return spark.sql(asked.plain)


def _look(topic: str, bootstrap_servers: str) -> Covered:
    given = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
    cluster = ClusterOffsets(parse_source_options(given, streaming=False))
    try:
        partitions = cluster.partitions(wait_for_topics=True)
        first, end = cluster.earliest(partitions), cluster.latest(partitions)
    finally:
        cluster.close()
    ranges = [(each.partition, first[each], end[each]) for each in partitions]
    return Covered(topic=topic, ranges=ranges)


def _topic_frame(spark: SparkSession, covered: Covered, bootstrap_servers: str) -> DataFrame:
    topic = covered.topic
    options = {
        "kafka.bootstrap.servers": bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": _as_json(topic, {each: first for each, first, _ in covered.ranges}),
        "endingOffsets": _as_json(topic, {each: end for each, _, end in covered.ranges}),
        "keyFormat": "string",
        "valueFormat": "string",
        "onDecodeError": "null",
    }
    return _with_fields(spark, spark.read.format("headrace").options(**options).load())


def _as_json(topic: str, offsets: dict[int, int]) -> str:
    return json.dumps({topic: {str(number): offset for number, offset in offsets.items()}})


def _with_fields(spark: SparkSession, frame: DataFrame) -> DataFrame:
    """The fields of JSON values beside the columns of the record; a field named like a column is left to `record`."""
    from pyspark.sql import functions as fn

    sample = [row.value for row in frame.select("value").limit(_SAMPLE_ROWS).collect() if row.value]
    if not sample or not all(_is_object(text) for text in sample):
        return frame
    schema = spark.read.json(spark.sparkContext.parallelize(sample, 1)).schema
    decoded = frame.withColumn("record", fn.from_json("value", schema))
    taken = {name.lower() for name in decoded.columns}
    fields = [name for name in schema.fieldNames() if name.lower() not in taken]
    return decoded.select("*", *[fn.col(f"record.`{name}`").alias(name) for name in fields])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as a table of text. Pure."""
    cells = [["NULL" if value is None else str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    rule = "-+-".join("-" * width for width in widths)
    lines = [
        " | ".join(f"{value:<{width}}" for value, width in zip(row, widths, strict=True))
        for row in [columns, *cells]
    ]
    return "\n".join(line.rstrip() for line in [lines[0], rule, *lines[1:]])
