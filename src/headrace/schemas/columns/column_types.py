"""Arrow types in the exact layout in which Spark declares its columns. Pure.

Spark compares the type of an Arrow batch with the declared one name by name, so that even the names of an array's elements count.
"""

from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
LOCAL_TIMESTAMP: Final = pa.timestamp("us")
TIME: Final = pa.time64("ns")
DURATION: Final = pa.duration("us")
MAX_DECIMAL_DIGITS: Final = 38


def list_of(element: pa.DataType) -> pa.DataType:
    """The type of an array column."""
    return pa.list_(pa.field("element", element))


def map_of(value: pa.DataType) -> pa.DataType:
    """The type of a map column whose keys are text."""
    return map_between(pa.string(), value)


def map_between(key: pa.DataType, value: pa.DataType) -> pa.DataType:
    """The type of a map column."""
    return pa.map_(pa.field("key", key, nullable=False), pa.field("value", value))


def fields_of(struct: pa.DataType) -> list[pa.Field]:
    """The fields of a struct."""
    return [struct.field(number) for number in range(struct.num_fields)]
