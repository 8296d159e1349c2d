"""Spark's own search for data sources finds ours by its name, where the package is installed."""

import io
import pickle
import struct

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.worker import lookup_data_sources

from headrace.pipelines.source import HeadraceDataSource


def test_spark_finds_the_source_by_its_name() -> None:
    told = io.BytesIO()
    lookup_data_sources._main(io.BytesIO(), told)
    told.seek(0)

    def number() -> int:
        (found,) = struct.unpack(">i", told.read(4))
        return int(found)

    sources = {told.read(number()).decode(): told.read(number()) for _ in range(number())}
    assert pickle.loads(sources["headrace"]) is HeadraceDataSource
