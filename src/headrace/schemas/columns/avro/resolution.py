"""Avro schema resolution: the plan by which bytes of a writer's schema become values of a reader's schema. Pure.

A plan has the writer's shape, because bytes are read in the writer's order, and says of each part where it belongs in the reader's
columns: fields that the reader does not have are skipped, those that the writer did not have get their default. Where the two do
not fit, the plan holds a `Mismatch`, which makes undecodable only those values that reach it. Decoders walk plans; nothing else
knows the rules of resolution: field names and aliases, promotions, unions, enum defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from headrace.schemas.columns.avro.types import (
    RECORDS,
    arrow_type,
    branches_of,
    decimal_type,
    logical_type,
)
from headrace.schemas.formats.avro.types import PROMOTIONS, Field, Json, Type

_SKIPPED: Final = pa.null()
# How many units of the column are in one unit of the value: TIME columns count nanoseconds, TIMESTAMP columns microseconds.
_FACTORS: Final = {
    "time-millis": 1_000_000,
    "time-micros": 1000,
    "timestamp-millis": 1000,
    "timestamp-micros": 1,
    "local-timestamp-millis": 1000,
    "local-timestamp-micros": 1,
}
_NAMED: Final = (*RECORDS, "enum", "fixed")


@dataclass(slots=True, eq=False, kw_only=True)
class Scalar:
    """A value without parts. `kind` is the writer's, `arrow` the type of the reader's column."""

    kind: str
    arrow: pa.DataType = _SKIPPED
    size: int = 0  # of a fixed
    factor: int = 1  # units of the column in a unit of the value
    scale: int = 0  # of a decimal as it was written
    symbols: tuple[
        str | None, ...
    ] = ()  # of an enum: the reader's name of each of the writer's symbols


@dataclass(slots=True, eq=False, kw_only=True)
class ArrayPlan:
    """An array."""

    element: Plan
    arrow: pa.DataType = _SKIPPED


@dataclass(slots=True, eq=False, kw_only=True)
class MapPlan:
    """A map, whose keys are text."""

    value: Plan
    arrow: pa.DataType = _SKIPPED


@dataclass(slots=True, eq=False, kw_only=True)
class Step:
    """A field as the writer has it; `target` is its place among the reader's fields, -1 where the reader has none."""

    plan: Plan
    target: int
    name: str


@dataclass(slots=True, eq=False, kw_only=True)
class RecordPlan:
    """A record: the writer's fields in their order, and the values of fields that only the reader has, by their place."""

    arrow: pa.DataType = _SKIPPED
    steps: list[Step] = field(default_factory=list)
    defaults: dict[int, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False, kw_only=True)
class UnionPlan:
    """The writer's union."""

    branches: list[Plan]
    arrow: pa.DataType = _SKIPPED


@dataclass(slots=True, eq=False, kw_only=True)
class MemberPlan:
    """A value that is one field of the struct which stands for the reader's union."""

    plan: Plan
    number: int
    arrow: pa.DataType


@dataclass(slots=True, eq=False, kw_only=True)
class Mismatch:
    """What the writer wrote here cannot be read as what the reader wants."""

    reason: str
    arrow: pa.DataType


Plan = Scalar | ArrayPlan | MapPlan | RecordPlan | UnionPlan | MemberPlan | Mismatch


def resolve(writer: Type, reader: Type) -> Plan:
    """How to read what `writer` describes as what `reader` describes. The reader's schema must not contain itself."""
    return _Resolver().resolve(writer, reader)


class _Resolver:
    def __init__(self) -> None:
        self._skips: dict[
            int, Plan
        ] = {}  # by the identity of the writer's type, which may contain itself

    def resolve(self, writer: Type, reader: Type) -> Plan:
        arrow = arrow_type(reader)
        if writer.kind == "union":
            return UnionPlan(
                branches=[self.resolve(each, reader) for each in writer.branches], arrow=arrow
            )
        if reader.kind == "union":
            return self._into_union(writer, reader, arrow)
        if writer.kind in RECORDS and reader.kind in RECORDS:
            return self._record(writer, reader, arrow)
        if writer.kind == reader.kind == "array":
            return ArrayPlan(element=self.resolve(writer.element, reader.element), arrow=arrow)
        if writer.kind == reader.kind == "map":
            return MapPlan(value=self.resolve(writer.element, reader.element), arrow=arrow)
        reason = _scalar_mismatch(writer, reader)
        if reason:
            return Mismatch(reason=reason, arrow=arrow)
        return _scalar(writer, reader, arrow)

    def _into_union(self, writer: Type, reader: Type, arrow: pa.DataType) -> Plan:
        branches = branches_of(reader)
        if writer.kind == "null" and branches.is_nullable:
            return Scalar(kind="null", arrow=arrow)
        if branches.widened:
            return self.resolve(writer, Type(branches.widened))
        chosen = self._branch(writer, branches.members)
        if chosen is None:
            names = ", ".join(_shown(each) for each in reader.branches)
            return Mismatch(
                reason=f"{_shown(writer)} is none of the reader's [{names}]", arrow=arrow
            )
        plan = self.resolve(writer, branches.members[chosen])
        return MemberPlan(plan=plan, number=chosen, arrow=arrow) if branches.is_struct else plan

    def _branch(self, writer: Type, members: tuple[Type, ...]) -> int | None:
        """The branch of the reader's union: the same type first, then a record of the same shape, then a promotion."""
        same_shape: int | None = None
        for number, member in enumerate(members):
            if _kind(writer) != _kind(member):
                continue
            if writer.kind not in _NAMED or member.full_name == writer.full_name:
                return number
            if writer.full_name in member.aliases:
                return number
            if self._fits(writer, member) and (
                same_shape is None or (writer.name == member.name != members[same_shape].name)
            ):
                same_shape = number
        if same_shape is not None:
            return same_shape
        return next(
            (
                number
                for number, member in enumerate(members)
                if writer.kind in PROMOTIONS.get(member.kind, ())
            ),
            None,
        )

    def _fits(self, writer: Type, reader: Type) -> bool:
        return not _has_mismatch(self.resolve(writer, reader))

    def _record(self, writer: Type, reader: Type, arrow: pa.DataType) -> Plan:
        targets = _targets(writer, reader)
        plan = RecordPlan(arrow=arrow)
        for each in writer.fields:
            target = targets.get(each.name, -1)
            inner = (
                self._skip(each.type)
                if target < 0
                else self.resolve(each.type, reader.fields[target].type)
            )
            plan.steps.append(Step(plan=inner, target=target, name=each.name))
        filled = set(targets.values())
        for number, wanted in enumerate(reader.fields):
            if number in filled:
                continue
            if not wanted.has_default:
                return Mismatch(
                    reason=f"the writer's {writer.full_name} has no field '{wanted.name}',"
                    " and the reader's schema has no default for it",
                    arrow=arrow,
                )
            try:
                plan.defaults[number] = _checked_default(wanted, arrow.field(number).type)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                # A registry may hold schemas whose defaults nobody checked.
                return Mismatch(
                    reason=f"the default of the field '{wanted.name}' is not a value of its type: {error}",
                    arrow=arrow,
                )
        return plan

    def _skip(self, writer: Type) -> Plan:
        known = self._skips.get(id(writer))
        if known is not None:
            return known
        if writer.kind in RECORDS:
            record = self._skips[id(writer)] = RecordPlan()
            record.steps = [
                Step(plan=self._skip(each.type), target=-1, name=each.name)
                for each in writer.fields
            ]
            return record
        if writer.kind == "array":
            return ArrayPlan(element=self._skip(writer.element))
        if writer.kind == "map":
            return MapPlan(value=self._skip(writer.element))
        if writer.kind == "union":
            return UnionPlan(branches=[self._skip(each) for each in writer.branches])
        return Scalar(kind=writer.kind, size=writer.size, symbols=(None,) * len(writer.symbols))


def _kind(type_: Type) -> str:
    return "record" if type_.kind in RECORDS else type_.kind


def _shown(type_: Type) -> str:
    return type_.full_name or type_.kind


def _targets(writer: Type, reader: Type) -> dict[str, int]:
    """The place among the reader's fields of each of the writer's fields that the reader has: by name, then by alias."""
    names = {each.name for each in writer.fields}
    found: dict[str, int] = {}
    for number, each in enumerate(reader.fields):
        name = next((name for name in (each.name, *each.aliases) if name in names), None)
        if name is not None and name not in found:
            found[name] = number
    return found


def _scalar_mismatch(writer: Type, reader: Type) -> str:
    """Why the one cannot be read as the other, or nothing."""
    if writer.kind == reader.kind:
        if writer.kind not in ("enum", "fixed"):
            return ""
        if writer.name != reader.name and writer.full_name not in reader.aliases:
            return f"the writer's {writer.kind} {writer.full_name} is not the reader's {reader.full_name}"
        if writer.size != reader.size:
            return f"{writer.full_name} has {writer.size} bytes, and the reader's schema says {reader.size}"
        return ""
    if writer.kind in PROMOTIONS.get(reader.kind, ()):
        return ""
    return f"{_shown(writer)} cannot be read as {_shown(reader)}"


def _scalar(writer: Type, reader: Type, arrow: pa.DataType) -> Scalar:
    return Scalar(
        kind=writer.kind,
        arrow=arrow,
        size=writer.size,
        factor=_factor(writer, reader),
        scale=_scale(writer, reader),
        symbols=_symbols(writer, reader),
    )


def _factor(writer: Type, reader: Type) -> int:
    """A number keeps the unit in which it was written, also where the reader's schema counts in another one."""
    meant, written = logical_type(reader), logical_type(writer)
    same_family = meant.rpartition("-")[0] == written.rpartition("-")[0]
    return _FACTORS.get(written if written and same_family else meant, 1)


def _scale(writer: Type, reader: Type) -> int:
    decimal = decimal_type(reader) and (decimal_type(writer) or decimal_type(reader))
    return 0 if decimal is None else int(decimal.scale)


def _symbols(writer: Type, reader: Type) -> tuple[str | None, ...]:
    return tuple(each if each in reader.symbols else reader.enum_default for each in writer.symbols)


def _has_mismatch(plan: Plan) -> bool:
    match plan:
        case Mismatch():
            return True
        case ArrayPlan():
            return _has_mismatch(plan.element)
        case MapPlan():
            return _has_mismatch(plan.value)
        case MemberPlan():
            return _has_mismatch(plan.plan)
        case RecordPlan():
            # What is skipped cannot be wrong, and may contain itself.
            return any(_has_mismatch(each.plan) for each in plan.steps if each.target >= 0)
        case UnionPlan():
            return any(map(_has_mismatch, plan.branches))
        case _:
            return False


# ---- defaults


def _checked_default(wanted: Field, arrow: pa.DataType) -> Any:
    value = default_value(wanted.type, wanted.default)
    pa.array([value], arrow)
    return value


def default_value(type_: Type, default: Json) -> Any:
    """A default of a schema as a value that `pyarrow.array` takes for the column's type."""
    match type_.kind:
        case "union":
            return _union_default(type_, default)
        case "array":
            return [default_value(type_.element, each) for each in default]
        case "map":
            return [(name, default_value(type_.element, each)) for name, each in default.items()]
        case "bytes" | "fixed":
            return _bytes_default(type_, default.encode("latin-1"))
        case "float" | "double":
            return float(default)
        case "int" | "long":
            return default * _FACTORS.get(logical_type(type_), 1)
        case kind if kind in RECORDS:
            return {each.name: _field_default(each, default) for each in type_.fields}
        case _:
            return default


def _field_default(each: Field, record: Json) -> Any:
    return default_value(
        each.type, record.get(each.name, each.default if each.has_default else None)
    )


def _union_default(union: Type, default: Json) -> Any:
    """The default of a union belongs to its first branch; schemas that name another one are found, and meant, all the same."""
    if default is None:
        return None
    branches = branches_of(union)
    first = union.branches[0]
    chosen = first if first.kind != "null" else branches.members[0]
    value = default_value(chosen, default)
    if not branches.is_struct:
        return value
    return {f"member{branches.members.index(chosen)}": value}


def _bytes_default(type_: Type, value: bytes) -> Any:
    decimal = decimal_type(type_)
    if decimal is None:
        return value
    assert pt.is_decimal(decimal)
    return Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-decimal.scale)
