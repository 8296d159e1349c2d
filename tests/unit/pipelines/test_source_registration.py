"""Spark's own search for data sources finds ours by its name, where the package is installed."""

import io
import pickle
import struct
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.worker import lookup_data_sources

from headrace.pipelines.source import HeadraceDataSource

# What Spark asks a source and a sink in processes that run no tasks.
PLANNING = """
import sys
from pyspark.sql.types import StructType
from headrace.pipelines.source import HeadraceDataSource

place = {"kafka.bootstrap.servers": "nowhere:1"}
HeadraceDataSource({"subscribe": "t", "valueFormat": "json", "valueSchema": "id INT", **place}).schema()
sink = HeadraceDataSource({"topic": "t", **place})
for writer in (sink.writer, sink.streamWriter):
    writer(schema=StructType().add("value", "string"), overwrite=False)
print(*({"numpy", "pyarrow", "pandas"} & set(sys.modules)))
"""


def test_spark_finds_the_source_by_its_name() -> None:
    told = io.BytesIO()
    lookup_data_sources._main(io.BytesIO(), told)
    told.seek(0)

    def number() -> int:
        (found,) = struct.unpack(">i", told.read(4))
        return int(found)

    sources = {told.read(number()).decode(): told.read(number()) for _ in range(number())}
    assert pickle.loads(sources["headrace"]) is HeadraceDataSource


def test_spark_plans_without_loading_numpy_and_arrow() -> None:
    """Spark plans and commits in young processes of their own, and a query waits for each of them."""
    told = subprocess.run(
        [sys.executable, "-c", PLANNING], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == []
