"""Avro values to Arrow columns, field by field over all rows at once. Pure.

Each row has a position in a common buffer; reading a field of all rows moves all positions. Values that this cannot do, or that
are damaged, are refused by their row: `values` then reads those rows one by one, or says what is wrong with them. So nothing
here explains an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from headrace.schemas.columns.avro.resolution import (
    ArrayPlan,
    MapPlan,
    MemberPlan,
    Plan,
    RecordPlan,
    Scalar,
    UnionPlan,
)
from headrace.schemas.columns.byte_columns import Bools, Buffer, Int64s, unzigzag
from headrace.schemas.columns.column_types import fields_of

_INT_LIMIT: Final = 2**31
_LONG_LIMIT: Final = 2**63
_DAY_NS: Final = 86_400_000_000_000
_DECIMAL_BYTES: Final = 16
_WIDTHS: Final = {"boolean": 1, "float": 4, "double": 8}
_VARINTS: Final = ("int", "long", "enum")
# A pass over the elements of arrays costs as much as reading some dozens of elements one by one: few rows are not worth many.
_FEW_ROWS: Final = 32
_FEW_PASSES: Final = 32


class ReadOneByOne(Exception):
    """Rows that must be read one by one."""

    def __init__(self, rows: Int64s) -> None:
        super().__init__()
        self.rows = np.unique(rows)


@dataclass(slots=True, eq=False)
class Rows:
    """Values that are being read: where each of them is, where it must end, and the row that it belongs to."""

    at: Int64s
    end: Int64s
    row: Int64s

    def __len__(self) -> int:
        return len(self.at)

    def some(self, places: npt.NDArray[Any]) -> Rows:
        return Rows(self.at[places], self.end[places], self.row[places])

    def refuse(self, which: Bools) -> None:
        """Raises ReadOneByOne if there is such a row."""
        if which.any():
            raise ReadOneByOne(self.row[which])

    def refuse_all(self) -> NoReturn:
        raise ReadOneByOne(self.row)

    def advance(self, following: Int64s) -> None:
        """Go on at these positions."""
        self.refuse((following > self.end) | (following < self.at))
        self.at = following


class ColumnDecoder:
    """Reads the values of one buffer."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._varint_ends: Int64s | None = None

    def decode(self, plan: Plan, rows: Rows) -> pa.Array:
        """The values at these positions, which move on. Raises ReadOneByOne."""
        match plan:
            case Scalar():
                return self._scalar(plan, rows)
            case RecordPlan():
                return self._record(plan, rows)
            case UnionPlan():
                return self._union(plan, rows)
            case ArrayPlan():
                counts, elements = self._elements(plan.element, rows)
                values = self.decode(plan.element, elements)
                return pa.ListArray.from_arrays(_offsets(counts), values, type=plan.arrow)
            case MapPlan():
                return self._map(plan, rows)
            case MemberPlan():
                return self._member(plan, rows)
            case _:
                raise ReadOneByOne(rows.row)

    def skip(self, plan: Plan, rows: Rows) -> None:
        """Move the positions behind the values. Raises ReadOneByOne."""
        match plan:
            case Scalar():
                self._skip_scalar(plan, rows)
            case RecordPlan():
                for step in plan.steps:
                    self.skip(step.plan, rows)
            case UnionPlan():
                for branch, places in self._branches(plan, rows):
                    chosen = rows.some(places)
                    self.skip(branch, chosen)
                    rows.at[places] = chosen.at
            case ArrayPlan():
                self._elements(plan.element, rows)
            case MapPlan():
                self._elements(_entry(plan), rows)
            case MemberPlan():
                self.skip(plan.plan, rows)
            case _:
                rows.refuse_all()

    # ---- scalars

    def _scalar(self, plan: Scalar, rows: Rows) -> pa.Array:
        match plan.kind:
            case "null":
                return pa.nulls(len(rows), plan.arrow)
            case "int" | "long":
                return _numbers(plan, self._longs(rows, plan.kind), rows)
            case "boolean":
                at = rows.at
                rows.advance(at + 1)
                return pa.array(self._buffer.data[at] == 1)
            case "float" | "double" as kind:
                at = rows.at
                rows.advance(at + _WIDTHS[kind])
                form = "<f4" if kind == "float" else "<f8"
                return pa.array(self._buffer.numbers(form, at)).cast(plan.arrow)
            case "enum":
                return _symbols(plan, self._longs(rows, "int"), rows)
            case _:
                start = self._start_of_bytes(plan, rows)
                return self._bytes(plan, start, rows)

    def _skip_scalar(self, plan: Scalar, rows: Rows) -> None:
        if plan.kind in _VARINTS:
            rows.advance(self._buffer.varints(rows.at)[1])
        elif plan.kind in _WIDTHS:
            rows.advance(rows.at + _WIDTHS[plan.kind])
        elif plan.kind != "null":
            self._start_of_bytes(plan, rows)

    def _longs(self, rows: Rows, kind: str) -> Int64s:
        value, following = self._buffer.varints(rows.at)
        rows.advance(following)
        found = unzigzag(value)
        if kind == "int":
            rows.refuse((found < -_INT_LIMIT) | (found >= _INT_LIMIT))
        return found

    def _start_of_bytes(self, plan: Scalar, rows: Rows) -> Int64s:
        """Where the bytes of a string, of bytes or of a fixed begin; the rows go on behind them."""
        if plan.kind == "fixed":
            start = rows.at
            rows.advance(start + plan.size)
            return start
        length = self._longs(rows, "long")
        start = rows.at
        rows.refuse((length < 0) | (length > rows.end - start))
        rows.at = start + length
        return start

    def _bytes(self, plan: Scalar, start: Int64s, rows: Rows) -> pa.Array:
        if pt.is_decimal(plan.arrow):
            return self._decimals(plan, start, rows)
        found = self._buffer.pieces(start, rows.at)
        if not pt.is_string(plan.arrow):
            return found
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            wrong = [row for row, text in enumerate(found.to_pylist()) if not _is_utf8(text)]
            raise ReadOneByOne(rows.row[wrong]) from None

    def _decimals(self, plan: Scalar, start: Int64s, rows: Rows) -> pa.Array:
        length = rows.at - start
        rows.refuse((length == 0) | (length > _DECIMAL_BYTES))
        data = self._buffer.data
        negative = data[start] >= 0x80
        digits = np.where(negative[:, None], np.uint8(0xFF), np.uint8(0)).repeat(_DECIMAL_BYTES, 1)
        for place in range(int(length.max(initial=0))):
            has = np.flatnonzero(length > place)
            digits[has, place] = data[rows.at[has] - 1 - place]
        written = pa.decimal128(38, plan.scale)
        buffers = [None, pa.py_buffer(np.ascontiguousarray(digits))]
        found = pa.Array.from_buffers(written, len(rows), buffers, null_count=0)
        try:
            found.validate(full=True)
            return found.cast(plan.arrow)
        except pa.ArrowInvalid:
            raise ReadOneByOne(rows.row) from None

    # ---- what has parts

    def _record(self, plan: RecordPlan, rows: Rows) -> pa.Array:
        fields = fields_of(plan.arrow)
        arrays: list[pa.Array | None] = [None] * len(fields)
        for step in plan.steps:
            if step.target < 0:
                self.skip(step.plan, rows)
            else:
                arrays[step.target] = self.decode(step.plan, rows)
        for number, value in plan.defaults.items():
            one = pa.array([value], fields[number].type)
            arrays[number] = one.take(pa.array(np.zeros(len(rows), dtype=np.int64)))
        if not fields:
            return pa.array([{}] * len(rows), plan.arrow)
        return pa.StructArray.from_arrays(
            [each for each in arrays if each is not None], fields=fields
        )

    def _branches(self, plan: UnionPlan, rows: Rows) -> list[tuple[Plan, Int64s]]:
        """The branches that occur, each with the places of its rows."""
        branch = self._longs(rows, "int")
        rows.refuse((branch < 0) | (branch >= len(plan.branches)))
        return [
            (each, np.flatnonzero(branch == number))
            for number, each in enumerate(plan.branches)
            if (branch == number).any()
        ]

    def _union(self, plan: UnionPlan, rows: Rows) -> pa.Array:
        found = self._branches(plan, rows)
        if len(found) == 1:
            return self.decode(found[0][0], rows)
        parts = []
        order = np.zeros(len(rows), dtype=np.int64)
        is_null = np.zeros(len(rows), dtype=np.bool_)
        done = 0
        for branch, places in found:
            if isinstance(branch, Scalar) and branch.kind == "null":
                is_null[places] = True
                continue
            chosen = rows.some(places)
            parts.append(self.decode(branch, chosen))
            rows.at[places] = chosen.at
            order[places] = np.arange(done, done + len(places))
            done += len(places)
        if not parts:
            return pa.nulls(len(rows), plan.arrow)
        whole = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return whole.take(pa.array(order, mask=is_null if is_null.any() else None))

    def _member(self, plan: MemberPlan, rows: Rows) -> pa.Array:
        value = self.decode(plan.plan, rows)
        fields = fields_of(plan.arrow)
        arrays = [
            value if number == plan.number else pa.nulls(len(rows), each.type)
            for number, each in enumerate(fields)
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields)

    def _map(self, plan: MapPlan, rows: Rows) -> pa.Array:
        counts, entries = self._elements(_entry(plan), rows)
        keys = self.decode(Scalar(kind="string", arrow=pa.string()), entries)
        values = self.decode(plan.value, entries)
        _refuse_duplicates(keys, np.repeat(np.arange(len(rows)), counts), entries)
        return pa.MapArray.from_arrays(_offsets(counts), keys, values, type=plan.arrow)

    def _elements(self, element: Plan, rows: Rows) -> tuple[Int64s, Rows]:
        """How many elements each array (or map) has, and all elements; the rows go on behind their arrays.

        Arrays of several blocks, which few writers make, are refused, and so are elements that take no bytes.
        """
        count = self._longs(rows, "long")
        sized = np.flatnonzero(count < 0)
        if sized.size:  # a block with its size in bytes, which is of use only for skipping
            some = rows.some(sized)
            self._longs(some, "long")
            rows.at[sized] = some.at
            count[sized] = -count[sized]
        rows.refuse((count < 0) | (count > rows.end - rows.at))
        places = np.flatnonzero(count)
        if not places.size:
            return count, rows.some(places)
        some = rows.some(places)
        starts = self._element_starts(element, some, count[places])
        rest = self._longs(some, "long")
        some.refuse(rest != 0)
        rows.at[places] = some.at
        repeats = count[places]
        return count, Rows(starts, np.repeat(some.end, repeats), np.repeat(some.row, repeats))

    def _element_starts(self, element: Plan, rows: Rows, count: Int64s) -> Int64s:
        """Where each element begins; the rows go on behind their last element."""
        width = _width(element)
        if width == 0:
            rows.refuse_all()
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        if width is not None:
            starts: Int64s = np.repeat(rows.at, count) + width * within
            rows.advance(rows.at + width * count)
            return starts
        if isinstance(element, Scalar) and element.kind in _VARINTS:
            return self._varint_starts(rows, count, within)
        return self._walked_starts(element, rows, count, within)

    def _varint_starts(self, rows: Rows, count: Int64s, within: Int64s) -> Int64s:
        """A number ends at its first byte below 128, so all ends are known at once."""
        if self._varint_ends is None:
            self._varint_ends = np.flatnonzero(self._buffer.data < 0x80)
        ends = self._varint_ends
        first = np.searchsorted(ends, rows.at)
        last = first + count - 1
        rows.refuse(last >= len(ends))
        before = np.repeat(first, count) + within - 1
        starts = np.where(within == 0, np.repeat(rows.at, count), ends[before] + 1)
        rows.advance(ends[last] + 1)
        return starts

    def _walked_starts(self, element: Plan, rows: Rows, count: Int64s, within: Int64s) -> Int64s:
        """One pass for all first elements, one for all second ones, and so on."""
        starts = np.empty(len(within), dtype=np.int64)
        first = np.cumsum(count) - count
        active = np.arange(len(rows))
        number = 0
        while active.size:
            if number >= _FEW_PASSES and active.size <= _FEW_ROWS:
                raise ReadOneByOne(rows.row[active])
            some = rows.some(active)
            starts[first[active] + number] = some.at
            self.skip(element, some)
            rows.at[active] = some.at
            number += 1
            active = active[count[active] > number]
        return starts


def _offsets(counts: Int64s) -> pa.Array:
    return pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _entry(plan: MapPlan) -> RecordPlan:
    """An entry of a map, as a record that is walked over."""
    from headrace.schemas.columns.avro.resolution import Step

    key = Step(plan=Scalar(kind="string"), target=-1, name="key")
    return RecordPlan(steps=[key, Step(plan=plan.value, target=-1, name="value")])


def _width(plan: Plan) -> int | None:
    """The bytes of a value where all values have as many, 0 where a value may have none, None where they differ."""
    if isinstance(plan, Scalar):
        if plan.kind == "fixed":
            return plan.size
        return 0 if plan.kind == "null" else _WIDTHS.get(plan.kind)
    if isinstance(plan, MemberPlan):
        return _width(plan.plan)
    if isinstance(plan, RecordPlan):
        return None if _takes_bytes(plan, 0) else 0
    return None


def _takes_bytes(plan: Plan, depth: int) -> bool:
    if isinstance(plan, RecordPlan):
        return depth < 10 and any(_takes_bytes(each.plan, depth + 1) for each in plan.steps)
    return _width(plan) != 0


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbers(plan: Scalar, value: Int64s, rows: Rows) -> pa.Array:
    wanted = plan.arrow
    if plan.factor != 1:
        most = (_LONG_LIMIT - 1) // plan.factor
        rows.refuse((value > most) | (value < -most))
        value = value * plan.factor
    if pt.is_int32(wanted) or pt.is_date32(wanted):
        return pa.array(value.astype(np.int32)).cast(wanted)
    if pt.is_time(wanted):
        rows.refuse((value < 0) | (value >= _DAY_NS))
        return pa.array(value).cast(wanted)
    if pt.is_floating(wanted):
        return pa.array(value.astype(np.float32 if pt.is_float32(wanted) else np.float64))
    found = pa.array(value)
    return found if pt.is_int64(wanted) else found.cast(wanted)


def _symbols(plan: Scalar, index: Int64s, rows: Rows) -> pa.Array:
    unknown = np.array([each is None for each in plan.symbols], dtype=np.bool_)
    rows.refuse((index < 0) | (index >= len(plan.symbols)))
    rows.refuse(unknown[index])
    return pa.array(plan.symbols, pa.string()).take(pa.array(index))


def _refuse_duplicates(keys: pa.Array, owner: Int64s, entries: Rows) -> None:
    """Of two entries of one map with the same key the last one counts, which is found one by one."""
    codes = pc.dictionary_encode(keys).indices.to_numpy(zero_copy_only=False).astype(np.int64)
    pairs = owner * (int(codes.max(initial=0)) + 1) + codes
    _, first, counted = np.unique(pairs, return_index=True, return_counts=True)
    if (counted > 1).any():
        raise ReadOneByOne(entries.row[first[counted > 1]])
