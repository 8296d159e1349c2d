"""Generated Avro schemas with values: as fastavro writes them, and as columns must show them."""

from __future__ import annotations

import io
import json
import string
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import fastavro
from hypothesis import strategies as st

Json = Any


@dataclass(frozen=True, slots=True)
class Sample:
    """A schema; how fastavro is given a value; what the column shows of it."""

    schema: Json
    values: st.SearchStrategy[tuple[Any, Any]]


def same(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, Any]]:
    return strategy.map(lambda each: (each, each))


_INTS = st.integers(-(2**31), 2**31 - 1) | st.integers(-100, 100)
_LONGS = st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

PRIMITIVES = {
    "boolean": same(st.booleans()),
    "int": same(_INTS),
    "long": same(_LONGS),
    "float": same(st.floats(width=32, allow_nan=False)),
    "double": same(st.floats(allow_nan=False)),
    "bytes": same(st.binary(max_size=12)),
    "string": same(_TEXT),
}
_MILLIS = st.integers(-(10**12), 10**12)


def _logical(kind: str, name: str, numbers: st.SearchStrategy[int], factor: int) -> Sample:
    return Sample(
        {"type": kind, "logicalType": name}, numbers.map(lambda each: (each, each * factor))
    )


def _decimal() -> Sample:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}
    numbers = st.integers(-(10**20) + 1, 10**20 - 1) | st.integers(-300, 300)
    return Sample(schema, numbers.map(lambda each: (_big_endian(each), Decimal(each).scaleb(-3))))


def _big_endian(number: int) -> bytes:
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


class Schemas:
    """Draws schemas whose named types all have names of their own."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self._names = 0

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def any(self, depth: int, *, union: bool = True) -> Sample:
        kinds = ["primitive", "primitive", "logical", "enum", "fixed"]
        if depth:
            kinds += ["record", "array", "map"] + (["nullable", "union"] if union else [])
        return getattr(self, f"_{self._draw(st.sampled_from(kinds))}")(depth)  # type: ignore[no-any-return]

    def _primitive(self, depth: int) -> Sample:
        kind = self._draw(st.sampled_from(sorted(PRIMITIVES)))
        return Sample(kind, PRIMITIVES[kind])

    def _logical(self, depth: int) -> Sample:
        return self._draw(  # type: ignore[no-any-return]
            st.sampled_from(
                [
                    _logical("int", "date", st.integers(-100_000, 100_000), 1),
                    _logical("int", "time-millis", st.integers(0, 86_399_999), 1_000_000),
                    _logical("long", "time-micros", st.integers(0, 86_399_999_999), 1000),
                    _logical("long", "timestamp-millis", _MILLIS, 1000),
                    _logical("long", "timestamp-micros", _MILLIS, 1),
                    _logical("long", "local-timestamp-micros", _MILLIS, 1),
                    _decimal(),
                ]
            )
        )

    def _enum(self, depth: int) -> Sample:
        symbols = [f"S{number}" for number in range(self._draw(st.integers(1, 4)))]
        schema = {"type": "enum", "name": self._name(), "symbols": symbols}
        return Sample(schema, same(st.sampled_from(symbols)))

    def _fixed(self, depth: int) -> Sample:
        size = self._draw(st.integers(1, 5))
        schema = {"type": "fixed", "name": self._name(), "size": size}
        return Sample(schema, same(st.binary(min_size=size, max_size=size)))

    def record(self, depth: int) -> Sample:
        return self._record(depth)

    def _record(self, depth: int) -> Sample:
        names = self._draw(
            st.lists(st.sampled_from(string.ascii_lowercase), max_size=4, unique=True)
        )
        fields = {name: self.any(depth - 1) for name in names}
        schema = {
            "type": "record",
            "name": self._name(),
            "fields": [{"name": name, "type": each.schema} for name, each in fields.items()],
        }
        values = st.fixed_dictionaries({name: each.values for name, each in fields.items()})
        return Sample(
            schema,
            values.map(
                lambda row: (
                    {name: pair[0] for name, pair in row.items()},
                    {name: pair[1] for name, pair in row.items()},
                )
            ),
        )

    def _array(self, depth: int) -> Sample:
        element = self.any(depth - 1)
        values = st.lists(element.values, max_size=4)
        return Sample(
            {"type": "array", "items": element.schema},
            values.map(lambda row: ([each[0] for each in row], [each[1] for each in row])),
        )

    def _map(self, depth: int) -> Sample:
        element = self.any(depth - 1)
        values = st.dictionaries(_TEXT, element.values, max_size=3)
        return Sample(
            {"type": "map", "values": element.schema},
            values.map(
                lambda row: (
                    {name: each[0] for name, each in row.items()},
                    [(name, each[1]) for name, each in row.items()],
                )
            ),
        )

    def _nullable(self, depth: int) -> Sample:
        inner = self.any(depth - 1, union=False)
        return Sample(["null", inner.schema], st.just((None, None)) | inner.values)

    def _union(self, depth: int) -> Sample:
        """Branches that fastavro tells apart by their Python types."""
        members = [
            Sample("string", PRIMITIVES["string"]),
            Sample("boolean", PRIMITIVES["boolean"]),
            Sample("double", same(st.floats(allow_nan=False))),
            self._array(depth),
        ]
        strategies: list[st.SearchStrategy[tuple[Any, Any]]] = [st.just((None, None))]
        strategies += [_as_member(number, member) for number, member in enumerate(members)]
        return Sample(["null", *(each.schema for each in members)], st.one_of(strategies))


def _as_member(number: int, member: Sample) -> st.SearchStrategy[tuple[Any, Any]]:
    return member.values.map(lambda pair: (pair[0], {f"member{number}": pair[1]}))


@st.composite
def columns(draw: Any, *, root: str = "any") -> tuple[Json, list[bytes], list[Any]]:
    """A schema, encoded rows of it, and what the column must show."""
    sample: Sample = getattr(Schemas(draw), root)(3)
    # Logical types are taken off for fastavro, so that numbers stay the numbers that they are on the wire.
    plain = fastavro.parse_schema(without_logical_types(sample.schema))
    rows = draw(st.lists(sample.values, max_size=8))
    return sample.schema, [encoded(plain, each) for each, _ in rows], [shown for _, shown in rows]


def encoded(schema: Json, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return out.getvalue()


def without_logical_types(schema: Json) -> Json:
    text = json.dumps(schema)
    return json.loads(
        text, object_hook=lambda each: {k: v for k, v in each.items() if k != "logicalType"}
    )
