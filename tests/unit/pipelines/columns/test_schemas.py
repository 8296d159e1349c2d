"""Schemas that travel in the metadata of Spark's columns."""

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructType

from headrace.pipelines.columns.schemas import from_metadata, with_metadata
from headrace.pipelines.reading.source_columns import ddl
from headrace.schemas.columns.codec import PinnedSchema


def test_a_schema_is_found_again_in_its_column() -> None:
    columns = StructType().add("key", StringType()).add("value", LongType())
    pinned = PinnedSchema("PROTOBUF", "text", "M")
    packed = with_metadata(columns, {"value": pinned})
    assert from_metadata(StructType.fromJson(packed.jsonValue())) == {"value": pinned}
    assert packed["key"].metadata == {}


def test_names_in_ddl_are_quoted() -> None:
    inner = StructType().add("a b", StringType()).add("`", ArrayType(LongType()))
    wanted = StructType().add("order", MapType(StringType(), inner))
    assert ddl(wanted) == "STRUCT<`order`: MAP<string, STRUCT<`a b`: string, ````: ARRAY<bigint>>>>"
