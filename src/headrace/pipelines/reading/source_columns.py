"""The columns of the source as Spark declares them, where the user gave no schema of their own.

Types that a registry's schema tells come with that schema in their metadata (see `columns.schemas`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.pipelines.options.source_options import Opening, columns_ddl

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from headrace.pipelines.options.source_options import TopicChoice


def declared_columns(opening: Opening, topics: TopicChoice) -> str | StructType:
    """The columns. Raises OptionError, RegistryUnreachable."""
    if opening.registry is None:
        return columns_ddl(opening, {})
    from headrace.pipelines.columns.schemas import chosen_schemas, with_metadata

    pinned = chosen_schemas((opening.key, opening.value), opening.registry, topics)
    types = {name: _spark_type(opening, name, schema) for name, schema in pinned.items()}
    if "json" in (opening.key.format, opening.value.format):
        # Only Spark's JVM reads the DDL of a JSON column, and DDL has no metadata: the schema is chosen again for the reader.
        return columns_ddl(opening, {name: ddl(each) for name, each in types.items()})
    return with_metadata(_columns(opening, types), pinned)


def _spark_type(opening: Opening, name: str, schema: object) -> DataType:
    from pyspark.sql.pandas.types import from_arrow_type

    from headrace.pipelines.options.known_options import OptionError
    from headrace.schemas.columns.codec import PinnedSchema
    from headrace.schemas.columns.codecs import codec_of
    from headrace.schemas.formats.schema_format import InvalidSchema

    assert isinstance(schema, PinnedSchema)
    wanted = opening.key if name == "key" else opening.value
    try:
        return from_arrow_type(codec_of(wanted.format).column_type(schema))
    except InvalidSchema as error:
        raise OptionError(f"the schema of the {name}: {error}") from error


def _columns(opening: Opening, types: Mapping[str, DataType]) -> StructType:
    from pyspark.sql.types import (
        ArrayType,
        BinaryType,
        IntegerType,
        LongType,
        StringType,
        StructType,
        TimestampType,
    )

    plain = {"binary": BinaryType(), "string": StringType()}
    columns = StructType()
    for each in (opening.key, opening.value):
        columns.add(each.column, types.get(each.column) or plain[each.format])
    columns.add("topic", StringType()).add("partition", IntegerType()).add("offset", LongType())
    columns.add("timestamp", TimestampType()).add("timestampType", IntegerType())
    if opening.include_headers:
        header = StructType().add("key", StringType()).add("value", BinaryType())
        columns.add("headers", ArrayType(header))
    return columns


def ddl(wanted: DataType) -> str:
    """A type as DDL, with every name in quotes."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(wanted, StructType):
        fields = (f"`{each.name.replace('`', '``')}`: {ddl(each.dataType)}" for each in wanted)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(wanted, ArrayType):
        return f"ARRAY<{ddl(wanted.elementType)}>"
    if isinstance(wanted, MapType):
        return f"MAP<{ddl(wanted.keyType)}, {ddl(wanted.valueType)}>"
    return wanted.simpleString()
