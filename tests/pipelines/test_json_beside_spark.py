"""`valueFormat=json` beside Spark's `from_json`: whatever Spark reads, we read, with the same result."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headrace.pipelines.columns.value_formats import decode_column
from headrace.pipelines.topic_sql import answer, question
from headrace.schemas.columns.decoded import Decoded
from tests.pipelines.json_cases import SCALARS, schema, texts
from tests.pipelines.queries import batch, write
from tests.support.spark_topics import Topics

SEED = 20_261_118
GENERATED_SCHEMAS = 20
GENERATED_TEXTS = 300
UNREADABLE = "unreadable"

# docs/pipelines.md says what differs on purpose: text behind the first object, and no text at all, are no values.
ON_PURPOSE = "Extra data"


def test_generated_texts_and_schemas(spark: SparkSession) -> None:
    random = Random(SEED)
    schemas = [f"a {each}" for each in (*SCALARS, "STRUCT<>", "ARRAY<BINARY>")]
    schemas += [schema(random) for _ in range(GENERATED_SCHEMAS)]
    cases = texts(random, GENERATED_TEXTS)
    by_spark = _by_spark(spark, schemas, cases)
    differing = []
    for number, ddl in enumerate(schemas):
        ours = _by_us(ddl, cases)
        alone = {row: _by_us(ddl, [text]) for row, text in enumerate(cases) if row % 7 == 0}
        for row, text in enumerate(cases):
            if ON_PURPOSE in ours.errors.get(row, ""):
                continue
            expected = by_spark[number][row]
            found = _plain(ours, row)
            if repr(expected) != repr(found):
                differing.append(f"{ddl}: {text!r}: Spark {expected!r}, we {found!r}")
            if row in alone and repr(_plain(alone[row], 0)) != repr(found):
                differing.append(
                    f"{ddl}: {text!r}: alone {_plain(alone[row], 0)!r}, else {found!r}"
                )
    assert not differing, f"{len(differing)} differ (seed {SEED}):\n" + "\n".join(differing[:40])


def _by_spark(spark: SparkSession, schemas: list[str], cases: list[str]) -> list[list[Any]]:
    """By schema and text, in one query: the value that from_json finds, or UNREADABLE."""
    options = {"columnNameOfCorruptRecord": "_bad", "timeZone": "UTC"}
    frame = spark.createDataFrame(list(enumerate(cases)), "row INT, text STRING").coalesce(1)
    columns = [
        fn.from_json("text", f"{ddl}, _bad STRING", options).alias(f"c{number}")
        for number, ddl in enumerate(schemas)
    ]
    rows = sorted(frame.select("row", *columns).toArrow().to_pylist(), key=lambda row: row["row"])
    found = []
    for number, ddl in enumerate(schemas):
        wanted = _arrow_type(ddl)
        of_schema = []
        for row in rows:
            value = row[f"c{number}"]
            if value is None or value.pop("_bad") is not None:
                of_schema.append(UNREADABLE)
            else:
                of_schema.append(_sorted_maps(value, wanted))
        found.append(of_schema)
    return found


def _by_us(ddl: str, cases: list[str]) -> Decoded:
    values = pa.array([each.encode() for each in cases], pa.binary())
    return decode_column(values, _arrow_type(ddl))


def _plain(found: Decoded, row: int) -> Any:
    if row in found.errors:
        return UNREADABLE
    return _sorted_maps(found.values[row].as_py(), found.values.type)


def _arrow_type(ddl: str) -> pa.DataType:
    fields = StructType.fromDDL(ddl)
    assert isinstance(fields, StructType)
    return pa.struct(list(to_arrow_schema(fields, timezone="UTC")))


def _sorted_maps(value: Any, wanted: pa.DataType) -> Any:
    """Entries of maps have no order."""
    if value is None:
        return None
    if pa.types.is_struct(wanted):
        fields = [wanted.field(number) for number in range(wanted.num_fields)]
        return {each.name: _sorted_maps(value[each.name], each.type) for each in fields}
    if pa.types.is_map(wanted):
        return sorted(
            (key, _sorted_maps(each, wanted.item_type)) for key, each in dict(value).items()
        )
    if pa.types.is_list(wanted):
        return [_sorted_maps(each, wanted.value_type) for each in value]
    return value


def test_what_pipelines_and_spark_write_is_read_again(spark: SparkSession, topics: Topics) -> None:
    """Rows written as JSON come back through valueFormat=json and through SQL over the topic."""
    topic = topics.create("round")
    ddl = "n BIGINT, d DOUBLE, t TIMESTAMP, b BINARY, day DATE, m MAP<STRING, INT>, s STRING"
    rows = spark.sql(
        "select 7L n, double('NaN') d, timestamp'2024-01-02 03:04:05.123Z' t, X'00FF' b,"
        " date'2024-01-02' day, map('x', 1) m, 'é' s"
        " union all select null, double('-Infinity'), null, X'', null, map(), null"
    )
    write(rows.select(fn.to_json(fn.struct("*")).alias("value")), topics, topic=topic)
    ours = batch(spark, topics, topic, valueFormat="json", valueSchema=ddl).select("value.*")
    assert sorted(map(repr, ours.collect())) == sorted(map(repr, rows.collect()))
    asked = question(
        f"select n, d, s from topic({topic})", bootstrap_servers=topics.bootstrap_servers
    )
    by_sql = answer(spark, asked).selectExpr("n", "double(d) d", "s")
    assert sorted(map(repr, by_sql.collect())) == sorted(
        map(repr, ours.select("n", "d", "s").collect())
    )
