"""SQL over stored records: `select … from topic(orders)`.

Each `topic(NAME)` becomes a view on the records the topic holds at that moment; which offsets those are is said with the result.
Where all of a sample of values are JSON objects, their fields are columns.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
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


def query(
    spark: SparkSession, text: str, *, bootstrap_servers: str
) -> tuple[DataFrame, list[Covered]]:
    """A query's result and the offsets it covers."""
    plain, views = with_views(text)
    covered = []
    for view, topic in views.items():
        frame, seen = _topic_frame(spark, topic, bootstrap_servers)
        frame.createOrReplaceTempView(view)
        covered.append(seen)
    return spark.sql(plain), covered


def _topic_frame(
    spark: SparkSession, topic: str, bootstrap_servers: str
) -> tuple[DataFrame, Covered]:
    given = {"kafka.bootstrap.servers": bootstrap_servers, "subscribe": topic}
    cluster = ClusterOffsets(parse_source_options(given, streaming=False))
    try:
        partitions = cluster.partitions(wait_for_topics=True)
        first, end = cluster.earliest(partitions), cluster.latest(partitions)
    finally:
        cluster.close()
    options = {
        **given,
        "startingOffsets": _as_json(topic, {each.partition: first[each] for each in partitions}),
        "endingOffsets": _as_json(topic, {each.partition: end[each] for each in partitions}),
        "keyFormat": "string",
        "valueFormat": "string",
        "onDecodeError": "null",
    }
    frame = spark.read.format("headrace").options(**options).load()
    ranges = [(each.partition, first[each], end[each]) for each in partitions]
    return _with_fields(spark, frame), Covered(topic=topic, ranges=ranges)


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
