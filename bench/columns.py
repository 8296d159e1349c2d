"""Values with schemas as Spark's columns: rows a second on one core, of the codecs alone and through Spark.

The record has six fields, some forty bytes in Avro. The codecs work on batches of 10,000 rows, as Spark's tasks do. Through Spark,
one task reads (or writes) a topic of a real broker with a real registry. Rates are the best of the turns, because the machine's
other work only ever makes a turn slower.
"""

import io
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.report import Line, Report
from headrace.pipelines.spark_session import start_session
from headrace.schemas.columns.byte_columns import ByteSpans
from headrace.schemas.columns.codecs import codec_of
from headrace.schemas.registry_client import Schema
from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess

ROWS = 10_000
STORED = 1_000_000
TURNS = 4
CODEC_TURNS = 30
FORMATS = ("avro", "protobuf", "jsonschema")
LEAST_AVRO = 0.4  # million rows a second
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "items", "type": "int"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
COLUMNS = """
    id * 1000003 as id, concat('customer-', id % 977) as customer, id * 1.5D as amount, cast(id % 7 as int) as items,
    case when id % 3 = 0 then 'leave it at the door' end as note, timestamp_millis(1700000000000 + id * 17) as at
"""


def run() -> Report:
    """All of it; about three minutes."""
    report = Report("columns: values with schemas, rows a second on one core")
    rows = _rows()
    for name in FORMATS:
        report.lines += _codec_alone(name, rows)
    report.lines.append(_fastavro(rows))
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as scratch:
        directory = Path(scratch)
        with (
            HeadraceProcess(directory / "broker") as broker,
            RegistryProcess(directory / "registry", f"127.0.0.1:{broker.port}") as registry,
        ):
            registry.await_primary()
            spark = start_session(
                "bench",
                master="local[1]",
                settings={"spark.driver.memory": "2g"},
                log_file=directory / "spark.log",
            )
            try:
                for name in ("binary", *FORMATS):
                    report.lines += _through_spark(spark, broker.port, registry.url, name)
            finally:
                spark.stop()
    return report


def _rows() -> list[dict[str, Any]]:
    return [
        {
            "id": number * 1_000_003,
            "customer": f"customer-{number % 977}",
            "amount": number * 1.5,
            "items": number % 7,
            "note": None if number % 3 else "leave it at the door",
            "at": 1_700_000_000_000 + number * 17,
        }
        for number in range(ROWS)
    ]


def _rate(work: Callable[[], Any], rows: int, turns: int) -> float:
    """Million rows a second, the best of the turns; the first one warms up."""
    best = 0.0
    for turn in range(turns + 1):
        began = time.perf_counter()
        work()
        if turn:
            best = max(best, rows / (time.perf_counter() - began) / 1e6)
    return best


def _codec_alone(name: str, rows: list[dict[str, Any]]) -> list[Line]:
    codec = codec_of(name)
    avro = codec_of("avro").column_type(codec_of("avro").pin(Schema(json.dumps(AVRO))))
    schema = codec.pin(Schema(json.dumps(AVRO)) if name == "avro" else codec.derived(avro, "Order"))
    column = pa.array([{**row, "at": row["at"] * 1000} for row in rows], avro)
    encoder = codec.encoder(schema, column.type)
    spans = ByteSpans.of(encoder.encode(column))
    decoder = codec.decoder(schema, schema, codec.column_type(schema))
    assert decoder.decode(spans).values.to_pylist() == column.to_pylist()
    decoding = _rate(lambda: decoder.decode(spans), ROWS, CODEC_TURNS)
    encoding = _rate(lambda: encoder.encode(column), ROWS, CODEC_TURNS)
    least = LEAST_AVRO if name == "avro" else None
    return [
        Line(what=f"decode {name}, M rows/s", value=decoding, at_least=least),
        Line(what=f"encode {name}, M rows/s", value=encoding),
    ]


def _fastavro(rows: list[dict[str, Any]]) -> Line:
    """What the usual way would do: a Python object for each row, then a column."""
    parsed = fastavro.parse_schema(AVRO)
    stored = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        stored.append(out.getvalue())

    def read() -> pa.Array:
        return pa.array(
            [fastavro.schemaless_reader(io.BytesIO(row), parsed, None) for row in stored]
        )

    return Line(what="fastavro and pyarrow.array, M rows/s", value=_rate(read, ROWS, 5))


def _through_spark(spark: SparkSession, port: int, registry: str, name: str) -> list[Line]:
    options = {"kafka.bootstrap.servers": f"127.0.0.1:{port}", "valueFormat": name}
    if name != "binary":
        options["schemaRegistry"] = registry
    topic = f"orders-{name}"
    spark.range(0, STORED, 1, 1).createOrReplaceTempView("numbers")
    columns = spark.sql(f"select {COLUMNS} from numbers")
    value = "to_json(struct(*))" if name == "binary" else "struct(*)"
    written = columns.selectExpr(f"{value} as value")

    def write() -> None:
        written.write.format("headrace").mode("append").options(topic=topic, **options).save()

    writing = _rate(write, STORED, 1)
    frame = (
        spark.read.format("headrace")
        .options(subscribe=topic, endingOffsets=json.dumps({topic: {"0": STORED}}), **options)
        .load()
    )
    reading = _rate(lambda: _consumed(frame), STORED, TURNS)
    what = "bytes (JSON text)" if name == "binary" else name
    least = LEAST_AVRO if name == "avro" else None
    return [
        Line(what=f"Spark reads {what}, one task, M rows/s", value=reading, at_least=least),
        Line(what=f"Spark writes {what}, one task, M rows/s", value=writing),
    ]


def _consumed(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()
