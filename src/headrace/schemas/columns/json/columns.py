"""JSON texts to Arrow columns: many texts in one go where Arrow's reader and Spark's `from_json` agree, one by one elsewhere.

One text that Arrow refuses makes it refuse the whole lot; the lot is then halved until few are left, and these are read one by one
by `values`, which knows all of Spark's rules, and those of JSON Schema. What Arrow takes, both take.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.types as pt

from headrace.schemas.columns.byte_columns import offsets_and_data
from headrace.schemas.columns.decoded import Decoded
from headrace.schemas.columns.json.values import JsonReader, JsonRules, decode_base64
from headrace.schemas.formats.schema_format import InvalidSchema

_FEW: Final = 16  # values that are read one by one rather than halved again
_DATE: Final = r"^\d{4}-\d{2}-\d{2}$"
_TIME: Final = r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?$"
_NANOSECONDS: Final = r"(\.\d{6})\d+"
_ZONED_TIME: Final = (
    r"^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(Z|[+-](0\d|1[0-7]):[0-5]\d)$"
)
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")


def decode_json(
    values: pa.Array, wanted: pa.DataType, rules: JsonRules = JsonRules.SPARK
) -> Decoded:
    """The texts of a binary array as values of a type; nulls stay null."""
    present = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    texts = values.take(pa.array(present)) if len(present) < len(values) else values
    errors: dict[int, str] = {}
    parts = _JsonColumn(JsonReader(wanted, rules), wanted, errors).parts(texts)
    parsed = pa.concat_arrays(parts) if parts else pa.nulls(0, wanted)
    # Every present value stands in `parsed`, the bad ones as null; the absent ones are put back.
    if len(present) < len(values):
        places = np.zeros(len(values), dtype=np.int64)
        places[present] = np.arange(len(present))
        absent = np.ones(len(values), dtype=np.bool_)
        absent[present] = False
        parsed = parsed.take(pa.array(places, mask=absent))
    return Decoded(parsed, {int(present[row]): why for row, why in errors.items()})


def check_json_type(column: pa.Field, path: str) -> None:
    """Raises InvalidSchema where JSON cannot be read as this type."""
    wanted = column.type
    if (column.metadata or {}).get(b"variant"):
        raise InvalidSchema(f"{path} is a VARIANT, which JSON cannot be read as")
    if any(known(wanted) for known in (pt.is_duration, pt.is_interval, pt.is_time, pt.is_null)):
        raise InvalidSchema(f"{path} is of the type {wanted}, which JSON cannot be read as")
    if pt.is_map(wanted):
        if not pt.is_string(wanted.key_type):
            raise InvalidSchema(f"{path} is a map whose keys are not text, as names in JSON are")
        check_json_type(wanted.item_field, f"{path}.value")
        return
    for number in range(wanted.num_fields):
        inner = wanted.field(number)
        check_json_type(inner, f"{path}.{inner.name}")


class _JsonColumn:
    """Reads texts as values of one type; what is wrong with a text is put into `errors` under its row."""

    def __init__(self, reader: JsonReader, wanted: pa.DataType, errors: dict[int, str]) -> None:
        self._wanted = wanted
        self._errors = errors
        self._reader = reader
        self._is_for_arrow = pt.is_struct(wanted) and _is_for_arrow(wanted)

    def parts(self, texts: pa.Array, first: int = 0) -> list[pa.Array]:
        """The values, in arrays that follow each other; `first` is the row of the first text."""
        if not len(texts):
            return []
        # Arrow must see nothing else: a null in the first place ends the whole process.
        if self._is_for_arrow and _look_like_objects(texts):
            try:
                return [_read_together(texts, self._wanted)]
            except (pa.ArrowInvalid, ValueError):
                pass
        if len(texts) <= _FEW or not self._is_for_arrow:
            return [self._one_by_one(texts, first)]
        half = len(texts) // 2
        return [
            *self.parts(texts.slice(0, half), first),
            *self.parts(texts.slice(half), first + half),
        ]

    def _one_by_one(self, texts: pa.Array, first: int) -> pa.Array:
        values = []
        for row, text in enumerate(texts.to_pylist(), first):
            try:
                values.append(self._reader.read(text))
            except ValueError as error:
                values.append(None)
                self._errors[row] = f"not the wanted JSON: {error}"
        return pa.array(values, self._wanted)


def _look_like_objects(texts: pa.Array) -> bool:
    """Whether each begins with { and ends with }: then no object can reach from one value into the next."""
    ends, buffer = offsets_and_data(texts)
    data = np.frombuffer(b"" if buffer is None else memoryview(buffer), dtype=np.uint8)
    starts, stops = ends[:-1], ends[1:]
    if (starts == stops).any():
        return False
    return bool((data[starts] == _OPEN).all() and (data[stops - 1] == _CLOSE).all())


def _read_together(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """All texts at once. Raises ArrowInvalid or ValueError where one of them is not for Arrow."""
    lines = b"\n".join(texts.to_pylist())
    lines.decode()  # Arrow does not look, and would put the bytes into a column of text
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
    fields = [wanted.field(number) for number in range(wanted.num_fields)]
    finished = [
        _finished(column, field.type) for column, field in zip(columns, fields, strict=True)
    ]
    return pa.StructArray.from_arrays(finished, fields=fields)


def _is_for_arrow(wanted: pa.DataType) -> bool:
    """Whether Arrow's reader knows the type: no maps, no structs without fields."""
    if pt.is_struct(wanted):
        inner = [wanted.field(number).type for number in range(wanted.num_fields)]
        return bool(inner) and all(map(_is_for_arrow, inner))
    if pt.is_list(wanted):
        return _is_for_arrow(wanted.value_type)
    return not pt.is_map(wanted)


def _readable(wanted: pa.DataType) -> pa.DataType:
    """The type to read as: what JSON has no form of its own for is made of text."""
    if pt.is_date(wanted) or pt.is_timestamp(wanted) or pt.is_binary(wanted):
        return pa.string()
    if pt.is_struct(wanted):
        inner = [wanted.field(number) for number in range(wanted.num_fields)]
        return pa.struct([pa.field(each.name, _readable(each.type)) for each in inner])
    if pt.is_list(wanted):
        element = wanted.field(0)
        return pa.list_(pa.field(element.name, _readable(element.type)))
    return wanted


def _finished(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """A column that was read as `_readable`, in the wanted type. Raises ValueError for forms that are not the usual ones."""
    if pt.is_struct(wanted):
        assert isinstance(column, pa.StructArray)
        fields = [wanted.field(number) for number in range(wanted.num_fields)]
        inner = [_finished(column.field(at), field.type) for at, field in enumerate(fields)]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=column.is_null())
    if pt.is_list(wanted):
        assert isinstance(column, pa.ListArray)
        elements = _finished(column.values, wanted.value_type)
        return pa.ListArray.from_arrays(
            column.offsets, elements, type=wanted, mask=column.is_null()
        )
    if pt.is_binary(wanted):
        texts = column.to_pylist()
        return pa.array([None if each is None else decode_base64(each) for each in texts], wanted)
    if pt.is_date(wanted):
        _require(column, _DATE)
        return column.cast(wanted)
    if pt.is_timestamp(wanted):
        return _finished_times(column, wanted)
    if pt.is_floating(wanted):
        _require_no_minus_zero(column)
    return column


def _finished_times(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    column = pc.replace_substring_regex(column, _NANOSECONDS, r"\1")  # Spark cuts them off, too
    if wanted.tz is not None and _fits(column, _ZONED_TIME):
        return column.cast(wanted)
    _require(column, _TIME)
    local = column.cast(pa.timestamp("us"))
    return local if wanted.tz is None else local.cast(pa.int64()).cast(wanted)


def _fits(column: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(column, pattern)).as_py() is not False


def _require(column: pa.Array, pattern: str) -> None:
    if not _fits(column, pattern):
        raise ValueError("an unusual form of a date or a time")


def _require_no_minus_zero(column: pa.Array) -> None:
    """Spark reads -0 as 0.0 and -0.0 as -0.0; Arrow reads both as -0.0."""
    numbers = column.fill_null(1).to_numpy(zero_copy_only=False)
    if (np.signbit(numbers) & (numbers == 0)).any():
        raise ValueError("a zero below zero")
