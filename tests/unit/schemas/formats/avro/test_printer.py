"""Avro schemas as text: Java's order of attributes, and names as short as they can be."""

import json
from typing import Any

import pytest

from headrace.schemas.formats.avro.parser import parse_avro
from headrace.schemas.formats.avro.printer import compact, schema_text


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ("int", '"int"'),
        ({"type": "int"}, '"int"'),
        ({"logicalType": "date", "type": "int"}, '{"type":"int","logicalType":"date"}'),
        ({"items": "int", "type": "array"}, '{"type":"array","items":"int"}'),
        ({"values": ["null", "int"], "type": "map", "x": 1}, '{"type":"map","values":["null","int"],"x":1}'),
        (
            {"default": "A", "symbols": ["A"], "doc": "d", "name": "n.E", "type": "enum", "aliases": ["F", "m.G"]},
            '{"type":"enum","name":"E","namespace":"n","doc":"d","symbols":["A"],"default":"A","aliases":["F","m.G"]}',
        ),
        ({"size": 4, "name": "F", "type": "fixed"}, '{"type":"fixed","name":"F","size":4}'),
    ],
)  # fmt: skip
def test_the_order_of_attributes(schema: Any, text: str) -> None:
    root, _ = parse_avro(json.dumps(schema), ())
    assert schema_text(root) == text


def test_a_named_type_is_written_out_once() -> None:
    inner = {"type": "fixed", "name": "F", "size": 1}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": "F"}]
    root, _ = parse_avro(json.dumps({"type": "record", "name": "n.R", "fields": fields}), ())
    assert schema_text(root).endswith(
        '[{"name":"a","type":{"type":"fixed","name":"F","size":1}},{"name":"b","type":"F"}]}'
    )
    assert '"type":"F"' in schema_text(root, ["n.F"])
    assert "fixed" not in schema_text(root, ["n.F"])


def test_values_as_java_writes_them() -> None:
    assert compact({"a": [1, 1e10, None, True, "\x00"]}) == r'{"a":[1,1.0E10,null,true,"\u0000"]}'
