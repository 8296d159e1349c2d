"""Bytes of keys and values as text or as JSON columns, a whole array at once, and which of them are not what they should be.

JSON is parsed by Arrow, many values in one go. One bad value makes Arrow refuse the whole lot; the lot is then halved until the
bad ones stand alone. It must not know where the bytes come from.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from headrace.pipelines.options import OptionError

_SPACE: Final = b" \t\r\n"
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")


@dataclass(slots=True)
class Decoded:
    """An array, null where decoding failed, and why, by row."""

    values: pa.Array
    errors: dict[int, str] = field(default_factory=dict)


def decode_column(values: pa.Array, wanted: pa.DataType) -> Decoded:
    """Bytes as the wanted type: binary as they are, string as UTF-8, a struct as JSON."""
    if pt.is_binary(wanted):
        return Decoded(values)
    if pt.is_string(wanted):
        return _decode_text(values)
    return _decode_json(values, wanted)


def check_type(wanted: pa.DataType, path: str) -> None:
    """Raises OptionError where JSON cannot be read as this type."""
    if pt.is_map(wanted):
        raise OptionError(f"{path} is a map, which valueFormat=json cannot build: use from_json")
    for number in range(wanted.num_fields):
        inner = wanted.field(number)
        check_type(inner.type, f"{path}.{inner.name}")


def _decode_text(values: pa.Array) -> Decoded:
    try:
        return Decoded(values.cast(pa.string()))
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    errors: dict[int, str] = {}
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            errors[row] = f"not UTF-8: {error}"
    return Decoded(pa.array(texts, pa.string()), errors)


def _decode_json(values: pa.Array, wanted: pa.DataType) -> Decoded:
    present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    texts = values.take(pa.array(present)) if len(present) < len(values) else values
    errors: dict[int, str] = {}
    parts = _parse(texts, 0, wanted, errors)
    parsed = pa.concat_arrays(parts) if parts else pa.nulls(0, wanted)
    # Every present value stands in `parsed`, the bad ones as null; the absent ones are put back.
    if len(present) < len(values):
        places = np.zeros(len(values), dtype=np.int64)
        places[present] = np.arange(len(present))
        absent = np.ones(len(values), dtype=np.bool_)
        absent[present] = False
        parsed = parsed.take(pa.array(places, mask=absent))
    return Decoded(parsed, {int(present[row]): why for row, why in errors.items()})


def _parse(
    texts: pa.Array, first: int, wanted: pa.DataType, errors: dict[int, str]
) -> list[pa.Array]:
    """The values as structs; `first` is the row of the first of them."""
    if not len(texts):
        return []
    why = "not an object"
    if len(texts) == 1:
        texts = pa.array([texts[0].as_py().strip(_SPACE)], pa.binary())
    # Arrow must see nothing else: a null in the first place ends the whole process.
    if _look_like_objects(texts):
        try:
            return [_parse_together(texts, wanted)]
        except (pa.ArrowInvalid, ValueError) as error:
            why = str(error)
    if len(texts) == 1:
        errors[first] = f"not the wanted JSON: {why}"
        return [pa.nulls(1, wanted)]
    half = len(texts) // 2
    return [
        *_parse(texts.slice(0, half), first, wanted, errors),
        *_parse(texts.slice(half), first + half, wanted, errors),
    ]


def _look_like_objects(texts: pa.Array) -> bool:
    """Whether each begins with { and ends with }: then no object can reach from one value into the next."""
    ends, data = _ends_and_data(texts)
    starts, stops = ends[:-1], ends[1:]
    if (starts == stops).any():
        return False
    return bool((data[starts] == _OPEN).all() and (data[stops - 1] == _CLOSE).all())


def _ends_and_data(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    _, ends_buffer, data_buffer = texts.buffers()
    assert ends_buffer is not None
    ends = np.frombuffer(memoryview(ends_buffer), dtype=np.int32)
    ends = ends[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.frombuffer(b"" if data_buffer is None else memoryview(data_buffer), dtype=np.uint8)
    return ends, data


def _parse_together(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    lines = b"\n".join(texts.to_pylist())
    readable = _readable(wanted)
    schema = pa.schema([readable.field(number) for number in range(readable.num_fields)])
    table = pj.read_json(
        pa.BufferReader(lines),
        pj.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pj.ParseOptions(
            explicit_schema=schema,
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        ),
    )
    if table.num_rows != len(texts):
        raise ValueError(f"{table.num_rows} objects in {len(texts)} values")
    columns = [table.column(name).combine_chunks() for name in schema.names]
    together = pa.StructArray.from_arrays(columns, fields=list(schema))
    return together if readable.equals(wanted) else together.cast(wanted)


def _readable(wanted: pa.DataType) -> pa.DataType:
    """The type to parse as: Arrow's JSON reader knows no dates, but dates are made of text."""
    if pt.is_date(wanted):
        return pa.string()
    if pt.is_struct(wanted):
        inner = [wanted.field(number) for number in range(wanted.num_fields)]
        return pa.struct([pa.field(each.name, _readable(each.type)) for each in inner])
    if pt.is_list(wanted):
        element = wanted.field(0)
        return pa.list_(pa.field(element.name, _readable(element.type)))
    return wanted
