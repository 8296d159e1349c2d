"""One Avro value at a time, as Python values that `pyarrow.array` takes for the reader's column. Pure.

The whole of the format, for what `columns` refuses: long arrays in few rows, arrays of several blocks, damaged values. It is
here that a damaged value is explained.
"""

from __future__ import annotations

import struct
from decimal import Context, Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.avro.resolution import (
    ArrayPlan,
    MapPlan,
    MemberPlan,
    Mismatch,
    Plan,
    RecordPlan,
    Scalar,
    UnionPlan,
)
from headrace.schemas.columns.column_types import fields_of
from headrace.schemas.columns.decoded import Undecodable

_INT_LIMIT: Final = 2**31
_LONG_LIMIT: Final = 2**63
_DAY_NS: Final = 86_400_000_000_000
_MAX_VARINT_BYTES: Final = 10
# Array elements without bytes (nulls, empty records) in one value, in all its arrays together. Few bytes could mean billions.
_MOST_EMPTY_ELEMENTS: Final = 100_000
_EXACT: Final = Context(prec=100)


def read_value(plan: Plan, data: bytes) -> Any:
    """The value of these bytes. Raises Undecodable."""
    try:
        return _Reader(data).read(plan)
    except RecursionError:
        raise Undecodable("nested too deeply") from None


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._empty_elements = 0

    def read(self, plan: Plan) -> Any:
        match plan:
            case Scalar():
                return self._scalar(plan)
            case RecordPlan():
                return self._record(plan)
            case UnionPlan():
                return self.read(self._branch(plan))
            case MemberPlan():
                return {f"member{plan.number}": self.read(plan.plan)}
            case ArrayPlan():
                return self._elements(lambda: self.read(plan.element))
            case MapPlan():
                entries = self._elements(lambda: (self._text(), self.read(plan.value)))
                return list(dict(entries).items())  # the last of equal keys counts
            case Mismatch():
                raise Undecodable(plan.reason)

    def _branch(self, plan: UnionPlan) -> Plan:
        number = self._long()
        if not 0 <= number < len(plan.branches):
            raise Undecodable(f"{number} is no branch of a union of {len(plan.branches)}")
        return plan.branches[number]

    def _record(self, plan: RecordPlan) -> dict[str, Any]:
        fields = fields_of(plan.arrow) if not pt.is_null(plan.arrow) else []
        row = {fields[number].name: value for number, value in plan.defaults.items()}
        for step in plan.steps:
            try:
                value = self.read(step.plan)
            except Undecodable as error:
                raise Undecodable(f"{step.name}: {error}") from None
            if step.target >= 0:
                row[fields[step.target].name] = value
        return row

    def _elements(self, read_one: Any) -> list[Any]:
        found: list[Any] = []
        while True:
            count = self._long()
            if count == 0:
                return found
            if count < 0:
                count = -count
                self._long()  # the block's size in bytes
            before = self._at
            found.append(read_one())
            if self._at == before:
                # A type has either no value of zero bytes or no other: the elements that follow are the same as this one.
                self._count_empty(count)
                found += found[-1:] * (count - 1)
            else:
                found.extend(read_one() for _ in range(count - 1))

    def _count_empty(self, count: int) -> None:
        self._empty_elements += count
        if self._empty_elements > _MOST_EMPTY_ELEMENTS:
            raise Undecodable(f"arrays of more than {_MOST_EMPTY_ELEMENTS} empty values")

    # ---- scalars

    def _scalar(self, plan: Scalar) -> Any:  # noqa: PLR0911 - one line per type
        match plan.kind:
            case "null":
                return None
            case "boolean":
                return self._take(1) == b"\x01"
            case "int":
                return _number(plan, self._int())
            case "long":
                return _number(plan, self._long())
            case "float":
                return struct.unpack("<f", self._take(4))[0]
            case "double":
                return struct.unpack("<d", self._take(8))[0]
            case "enum":
                return self._symbol(plan)
            case "fixed":
                return _bytes(plan, self._take(plan.size))
            case _:
                return _bytes(plan, self._take(self._long()))

    def _symbol(self, plan: Scalar) -> str | None:
        index = self._int()
        if not 0 <= index < len(plan.symbols):
            raise Undecodable(f"{index} is no symbol of an enum of {len(plan.symbols)}")
        symbol = plan.symbols[index]
        if symbol is None and not pt.is_null(plan.arrow):
            raise Undecodable(
                f"the writer's symbol number {index} is none of the reader's, whose schema has no default symbol"
            )
        return symbol

    def _take(self, count: int) -> bytes:
        if count < 0:
            raise Undecodable(f"{count} is no length")
        if count > len(self._data) - self._at:
            raise Undecodable(
                f"{count} bytes are announced, and {len(self._data) - self._at} are left"
            )
        found = self._data[self._at : self._at + count]
        self._at += count
        return found

    def _text(self) -> str:
        return _decoded(self._take(self._long()))

    def _int(self) -> int:
        value = self._long()
        if not -_INT_LIMIT <= value < _INT_LIMIT:
            raise Undecodable(f"{value} is no int")
        return value

    def _long(self) -> int:
        value = 0
        for count, byte in enumerate(self._data[self._at : self._at + _MAX_VARINT_BYTES]):
            value |= (byte & 0x7F) << (7 * count)
            if byte < 0x80:
                if value >> 64:
                    break
                self._at += count + 1
                return value >> 1 ^ -(value & 1)
        if self._at + _MAX_VARINT_BYTES > len(self._data):
            raise Undecodable("the value ends within a number")
        raise Undecodable("a number has more than 64 bits")


def _number(plan: Scalar, value: int) -> int | float:
    wanted = plan.arrow
    if pt.is_floating(wanted):
        # Rounded once: by way of a double, a float could be rounded twice.
        return float(np.float32(np.int64(value))) if pt.is_float32(wanted) else float(value)
    scaled = value * plan.factor
    if not -_LONG_LIMIT <= scaled < _LONG_LIMIT:
        raise Undecodable(f"{value} is beyond the times that a column can hold")
    if pt.is_time(wanted) and not 0 <= scaled < _DAY_NS:
        raise Undecodable(f"{value} is no time of a day")
    return scaled


def _bytes(plan: Scalar, value: bytes) -> Any:
    if pt.is_string(plan.arrow):
        return _decoded(value)
    return _decimal(plan, value) if pt.is_decimal(plan.arrow) else value


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Undecodable(f"not UTF-8: {error}") from None


def _decimal(plan: Scalar, value: bytes) -> Decimal:
    if not value:
        raise Undecodable("a decimal without bytes")
    if len(value) > 32:
        raise Undecodable(f"a decimal of {len(value)} bytes")
    number = Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-plan.scale, _EXACT)
    try:
        pa.array([number]).cast(plan.arrow)
    except pa.ArrowInvalid:
        raise Undecodable(f"{number} does not fit into {plan.arrow}") from None
    return number.quantize(Decimal(1).scaleb(-plan.arrow.scale), context=_EXACT)
