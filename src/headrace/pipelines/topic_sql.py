"""SQL over stored records: `select … from topic(orders)`.

Each `topic(NAME)` becomes a view on the records the topic holds at that moment; which offsets those are is said with the result.
Where values have schemas of a registry, or all of a sample of values are JSON objects, their fields are columns.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headrace.pipelines.cluster.cluster_offsets import ClusterOffsets
from headrace.pipelines.options.source_options import parse_source_options

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
    registry_url: str | None


def question(text: str, *, bootstrap_servers: str, registry_url: str | None = None) -> Question:
    """Look which records are there. Raises what is wrong with the cluster or a topic's name, which needs no Spark.

    Without `registry_url`, a registry on this machine is asked if one is there.
    """
    plain, topics = with_views(text)
    views = {view: _look(topic, bootstrap_servers) for view, topic in topics.items()}
    return Question(
        plain=plain, bootstrap_servers=bootstrap_servers, views=views, registry_url=registry_url
    )


def answer(spark: SparkSession, asked: Question) -> DataFrame:
    """The result of a query."""
    for view, covered in asked.views.items():
        _topic_frame(spark, covered, asked).createOrReplaceTempView(view)
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


def _topic_frame(spark: SparkSession, covered: Covered, asked: Question) -> DataFrame:
    topic = covered.topic
    options = {
        "kafka.bootstrap.servers": asked.bootstrap_servers,
        "subscribe": topic,
        "startingOffsets": _as_json(topic, {each: first for each, first, _ in covered.ranges}),
        "endingOffsets": _as_json(topic, {each: end for each, _, end in covered.ranges}),
    }
    reader = spark.read.format("headrace").options(**options)
    stored = reader.option("includeHeaders", "true").load()
    sample = stored.select("key", "value", "headers").limit(_SAMPLE_ROWS).collect()
    formats = _discovered(topic, sample, asked.registry_url)
    text = {"keyFormat": "string", "valueFormat": "string", "onDecodeError": "null"}
    frame = spark.read.format("headrace").options(**(options | text | formats)).load()
    if "valueFormat" in formats:
        return _with_columns(frame.withColumn("record", frame["value"]))
    return _with_fields(spark, frame, [row.value for row in sample if row.value is not None])


def _discovered(topic: str, sample: Sequence[Any], registry_url: str | None) -> dict[str, str]:
    """The options that read keys and values with their schemas, where they have some."""
    from headrace.pipelines.cluster.task_clients import new_registry_client
    from headrace.pipelines.columns.schema_discovery import (
        DEFAULT_URL,
        Sample,
        discovered,
        is_listening,
        registry_at,
    )
    from headrace.schemas.registry_transport import RegistryUnreachable

    url = registry_url or DEFAULT_URL
    if registry_url is None and not is_listening(url):
        return {}
    found: dict[str, str] = {}
    try:
        with new_registry_client(registry_at(url)) as client:
            for column in ("key", "value"):
                samples = [
                    Sample(
                        bytes(row[column]), [(each.key, each.value) for each in row.headers or ()]
                    )
                    for row in sample
                    if row[column] is not None
                ]
                if samples or column == "value":
                    found |= discovered(client, topic, column, samples)
    except RegistryUnreachable:
        if registry_url is not None:
            raise
        return {}  # something else listens there
    return found | {"schemaRegistry": url} if found else {}


def _as_json(topic: str, offsets: dict[int, int]) -> str:
    return json.dumps({topic: {str(number): offset for number, offset in offsets.items()}})


def _with_fields(spark: SparkSession, frame: DataFrame, sample: Sequence[bytes]) -> DataFrame:
    """The fields of JSON values beside the columns of the record."""
    from pyspark.sql import functions as fn

    texts = [bytes(each).decode(errors="replace") for each in sample if each]
    if not texts or not all(_is_object(text) for text in texts):
        return frame
    schema = spark.read.json(spark.sparkContext.parallelize(texts, 1)).schema
    return _with_columns(frame.withColumn("record", fn.from_json("value", schema)))


def _with_columns(frame: DataFrame) -> DataFrame:
    """The fields of `record` as columns; a field named like a column is left to `record`."""
    from pyspark.sql import functions as fn
    from pyspark.sql.types import StructType

    kind = frame.schema["record"].dataType
    if not isinstance(kind, StructType):
        return frame.drop("record")
    taken = {name.lower() for name in frame.columns}
    fields = [name for name in kind.fieldNames() if name.lower() not in taken]
    return frame.select("*", *[fn.col(f"record.`{name}`").alias(name) for name in fields])


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def text_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Rows as a table of text. Pure."""
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    rule = "-+-".join("-" * width for width in widths)
    lines = [
        " | ".join(f"{value:<{width}}" for value, width in zip(row, widths, strict=True))
        for row in [columns, *cells]
    ]
    return "\n".join(line.rstrip() for line in [lines[0], rule, *lines[1:]])


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, (tuple, list, dict)):  # a struct, an array, a map
        return json.dumps(json_value(value), ensure_ascii=False)
    return str(value)


def json_value(value: Any) -> Any:
    """A value of a row as what JSON can hold: structs and maps as objects, bytes in base64, times and decimals as text. Pure."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, tuple) and hasattr(value, "__fields__"):  # a Row
        return {name: json_value(each) for name, each in zip(value.__fields__, value, strict=True)}
    if isinstance(value, dict):
        return {
            name if isinstance(name, str) else _cell(name): json_value(each)
            for name, each in value.items()
        }
    if isinstance(value, (tuple, list)):
        return [json_value(each) for each in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    return str(value)
