"""Avro's JSON encoding: what is written with a schema is read back the same, for schemas and values of any form."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headrace.rest.payloads.avro_json import AvroCodec
from headrace.rest.payloads.schema_codec import NotOfSchema
from headrace.schemas.wire_format import Framed

Json = Any

LATIN = st.text(st.characters(max_codepoint=255), max_size=8)
PRIMITIVES: dict[str, st.SearchStrategy[Json]] = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.integers(-(2**16), 2**16).map(lambda number: number / 8),  # shown as they are
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(max_size=8),
    "bytes": LATIN,
}


class Schemas:
    """Schemas with a strategy for their values; names are used once."""

    def __init__(self) -> None:
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"N{self._count}"

    def draw(self, draw: Any, depth: int) -> tuple[Json, st.SearchStrategy[Json]]:
        kinds = [*PRIMITIVES, "enum", "fixed"]
        if depth:
            kinds += ["array", "map", "record", "union"] * 2
        kind = draw(st.sampled_from(kinds))
        if kind in PRIMITIVES:
            return kind, PRIMITIVES[kind]
        return getattr(self, f"_{kind}")(draw, depth - 1)  # type: ignore[no-any-return]

    def _enum(self, _: Any, __: int) -> tuple[Json, st.SearchStrategy[Json]]:
        symbols = ["A", "B", "C"]
        return {"type": "enum", "name": self.name(), "symbols": symbols}, st.sampled_from(symbols)

    def _fixed(self, draw: Any, _: int) -> tuple[Json, st.SearchStrategy[Json]]:
        size = draw(st.integers(1, 4))
        text = st.text(st.characters(max_codepoint=255), min_size=size, max_size=size)
        return {"type": "fixed", "name": self.name(), "size": size}, text

    def _array(self, draw: Any, depth: int) -> tuple[Json, st.SearchStrategy[Json]]:
        items, values = self.draw(draw, depth)
        if items == "null":
            items, values = "int", PRIMITIVES["int"]
        return {"type": "array", "items": items}, st.lists(values, max_size=3)

    def _map(self, draw: Any, depth: int) -> tuple[Json, st.SearchStrategy[Json]]:
        values_schema, values = self.draw(draw, depth)
        found = st.dictionaries(st.text(max_size=4), values, max_size=3)
        return {"type": "map", "values": values_schema}, found

    def _record(self, draw: Any, depth: int) -> tuple[Json, st.SearchStrategy[Json]]:
        fields, values = [], {}
        for number in range(draw(st.integers(1, 3))):
            schema, strategy = self.draw(draw, depth)
            fields.append({"name": f"f{number}", "type": schema})
            values[f"f{number}"] = strategy
        name = self.name()
        return {"type": "record", "name": name, "fields": fields}, st.fixed_dictionaries(values)

    def _union(self, draw: Any, depth: int) -> tuple[Json, st.SearchStrategy[Json]]:
        # At most one branch of each Python type but named ones: see the codec about int beside long.
        kinds = draw(
            st.lists(
                st.sampled_from(["null", "boolean", "long", "double", "string", "bytes"]),
                unique=True,
            )
        )
        branches: list[Json] = list(kinds)
        strategies: list[st.SearchStrategy[Json]] = [
            st.none() if kind == "null" else tagged(kind, PRIMITIVES[kind]) for kind in kinds
        ]
        for make in draw(st.lists(st.sampled_from(["_enum", "_record", "_fixed"]), max_size=2)):
            schema, strategy = getattr(self, make)(draw, depth)
            branches.append(schema)
            strategies.append(tagged(schema["name"], strategy))
        if not branches:
            branches, strategies = ["null"], [st.none()]
        return branches, st.one_of(strategies)


def tagged(branch: str, values: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Values of a branch of a union."""
    return values.map(lambda value: {branch: value})


@st.composite
def schemas_with_values(draw: Any) -> tuple[Json, Json]:
    schema, values = Schemas()._record(draw, 3)
    return schema, draw(values)


@given(schemas_with_values())
def test_what_is_written_is_read_back(case: tuple[Json, Json]) -> None:
    schema, value = case
    codec = AvroCodec(json.dumps(schema))
    try:
        read = codec.decode(Framed(1, codec.encode(json.dumps(value).encode())))
    except NotOfSchema as refused:
        assert "take no bytes" in str(refused)  # noqa: PT017 - arrays of nothing are written, but not read
        return
    assert read == value


@given(schemas_with_values(), st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(case: tuple[Json, Json], data: bytes) -> None:
    schema, _ = case
    try:
        AvroCodec(json.dumps(schema)).decode(Framed(1, data))
    except NotOfSchema:
        pass
