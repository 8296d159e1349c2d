"""Pairs of Avro schemas, hand-picked and generated from a seed, for comparing our verdicts with Confluent's."""

import json
import random
from collections.abc import Iterator
from typing import Any

LEVELS = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip
PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")

Schema = Any


def record(*fields: Schema, name: str = "R", **more: Schema) -> Schema:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type_: Schema, **more: Schema) -> Schema:
    return {"name": name, "type": type_, **more}


def enum(*symbols: str, name: str = "E", **more: Schema) -> Schema:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F", **more: Schema) -> Schema:
    return {"type": "fixed", "name": name, "size": size, **more}


RECURSIVE = record(field("next", ["null", "R"], default=None), field("v", "int"))

HAND_PICKED: tuple[tuple[Schema, Schema], ...] = (
    *((old, new) for old in PRIMITIVES for new in PRIMITIVES),
    (record(field("a", "int")), record(field("a", "int"), field("b", "int"))),
    (record(field("a", "int")), record(field("a", "int"), field("b", "int", default=1))),
    (record(field("a", "int"), field("b", "int")), record(field("a", "int"))),
    (record(field("a", "int")), record(field("b", "int", aliases=["a"]))),
    (record(field("a", "int")), record(field("a", ["null", "int"], default=None))),
    (record(field("a", ["null", "int"], default=None)), record(field("a", "int"))),
    (record(field("a", "int")), record(field("a", "int"), name="S")),
    (record(field("a", "int")), record(field("a", "int"), name="S", aliases=["R"])),
    (record(field("a", "int"), namespace="x"), record(field("a", "int"), namespace="y")),
    (record(field("a", "int"), name="x.R"), record(field("a", "int"), name="R", namespace="x")),
    (enum("A", "B"), enum("A", "B", "C")),
    (enum("A", "B", "C"), enum("A", "B")),
    (enum("A", "B", "C"), enum("A", "B", default="A")),
    (enum("A"), enum("A", name="G")),
    (fixed(4), fixed(8)),
    (fixed(4), fixed(4, name="G")),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}),
    (["null", "int"], ["null", "int", "string"]),
    (["null", "int", "string"], ["null", "int"]),
    (["int", "string"], ["long", "bytes"]),
    ("int", ["null", "int"]),
    (["int"], "int"),
    (["int", "long"], "long"),
    (RECURSIVE, RECURSIVE),
    (RECURSIVE, record(field("next", ["null", "R"], default=None), field("v", "long"))),
    (RECURSIVE, record(field("next", ["null", "R"], default=None), field("v", "string"))),
    (
        record(field("t", {"type": "long", "logicalType": "timestamp-millis"})),
        record(field("t", "long")),
    ),
    (
        record(field("a", record(field("x", "int"), name="In"))),
        record(field("a", record(field("x", "int"), field("y", "int", default=0), name="In"))),
    ),
    (record(field("a", enum("A", "B"))), record(field("a", enum("A")))),
    (record(), record(field("e", enum("A", "B", default="A")))),
)

# Schemas of which only validity and canonical text are compared.
SINGLE: tuple[Schema, ...] = (
    {"type": "record", "name": "R", "doc": "d\"q", "fields": [], "zz": {"b": 1, "a": [1, 2]}, "aliases": ["x.Q", "P"]},
    record(field("f", "int", order="descending", aliases=["g"], doc="x", extra=[1])),
    record(field("f", "string", default="ü\u2028\n")),
    record(field("f", "double", default=1)),
    record(field("f", "float", default=1.5)),
    record(field("f", "long", default=2**40)),
    record(field("f", "int", default=2**40)),
    record(field("f", "int", default="x")),
    record(field("f", ["null", "string"], default="x")),
    record(field("f", {"type": "array", "items": "int"}, default=[1, 2])),
    record(field("f", record(field("g", "int"), name="S"), default={"g": 1})),
    record(field("f", record(field("g", "int"), name="S"), default={})),
    record(field("a", "S"), name="R"),
    record(field("a", "int"), field("a", "int")),
    record(field("a", record(field("x", "int"), name="R"))),
    record(field("a", record(field("x", "int"), name="S")), field("b", "S"), namespace="n.m"),
    record(field("a", record(field("x", "int"), name="S", namespace="other")), field("b", "other.S"), namespace="n"),
    record(field("a", record(field("x", "int"), name="S", namespace="")), namespace="n"),
    enum("A", "B", default="C"),
    enum("A", "A"),
    enum("1A"),
    enum("A", "B", default="B", doc="hello", namespace="e"),
    fixed(-1),
    fixed(16, logicalType="decimal", precision=10, scale=2),
    {"type": "string", "avro.java.string": "String"},
    {"type": "string"},
    {"type": "array", "items": {"type": "map", "values": "long"}, "p": 1},
    ["null", "null"],
    ["null", ["int"]],
    [],
    {"type": "unknown"},
    {"type": "record", "name": "1R", "fields": []},
    {"type": "record", "fields": []},
    {"type": "record", "name": "R"},
    {"type": "array"},
    "string",
)  # fmt: skip


def generated(seed: int, count: int) -> Iterator[tuple[Schema, Schema]]:
    """Pairs of which the second is a changed copy of the first."""
    chance = random.Random(seed)
    for _ in range(count):
        old = _schema(chance, 0, [])
        yield old, _changed(chance, old)


def _schema(chance: random.Random, depth: int, names: list[str]) -> Schema:
    kind = chance.choice(
        ("primitive", "primitive", "record", "enum", "array", "map", "union", "fixed")
    )
    if depth > 2 and kind in ("record", "array", "map", "union"):
        kind = "primitive"
    if kind == "primitive":
        return chance.choice(PRIMITIVES)
    if kind == "array":
        return {"type": "array", "items": _schema(chance, depth + 1, names)}
    if kind == "map":
        return {"type": "map", "values": _schema(chance, depth + 1, names)}
    if kind == "union":
        return chance.sample(PRIMITIVES, chance.randint(1, 4))
    name = f"N{len(names)}"
    names.append(name)
    if kind == "enum":
        return enum(*chance.sample("ABCDE", chance.randint(1, 4)), name=name)
    if kind == "fixed":
        return fixed(chance.randint(1, 8), name=name)
    fields = [
        field(f"f{index}", _schema(chance, depth + 1, names))
        for index in range(chance.randint(0, 4))
    ]
    return record(*fields, name=name)


def _changed(chance: random.Random, schema: Schema) -> Schema:
    schema = json.loads(json.dumps(schema))
    for _ in range(chance.randint(0, 2)):
        schema = _change(chance, schema)
    return schema


def _change(chance: random.Random, schema: Schema) -> Schema:  # noqa: C901, PLR0912 - a list of changes
    if isinstance(schema, str):
        return chance.choice((*PRIMITIVES, ["null", schema] if schema != "null" else "null"))
    if isinstance(schema, list):
        return chance.sample(PRIMITIVES, chance.randint(1, 4))
    match schema["type"]:
        case "array":
            schema["items"] = _change(chance, schema["items"])
        case "map":
            schema["values"] = _change(chance, schema["values"])
        case "enum":
            schema["symbols"] = chance.sample("ABCDE", chance.randint(1, 5))
            if chance.random() < 0.3:
                schema["default"] = schema["symbols"][0]
        case "fixed":
            if chance.random() < 0.5:
                schema["size"] += 1
            else:
                schema["name"] += "x"
        case _:
            fields = schema["fields"]
            what = chance.choice(
                ("add", "add default", "remove", "change", "rename", "alias", "type")
            )
            if what == "add":
                fields.append(field(f"n{len(fields)}", chance.choice(PRIMITIVES)))
            elif what == "add default":
                fields.append(field(f"n{len(fields)}", "int", default=3))
            elif what == "type":
                schema["name"] += "x"
            elif fields:
                index = chance.randrange(len(fields))
                if what == "remove":
                    del fields[index]
                elif what == "change":
                    fields[index]["type"] = _change(chance, fields[index]["type"])
                else:
                    if what == "alias":
                        fields[index]["aliases"] = [fields[index]["name"]]
                    fields[index]["name"] += "x"
    return schema


# Texts of which validity, canonical and normalised text are compared.
TEXTS = (
    *(
        f'{{"type":"record","name":"R","fields":[{{"name":"f","type":"double","default":{number}}}]}}'
        for number in (
            "1.0",
            "1E2",
            "1e22",
            "1.5e-7",
            "0.10",
            "123456789.123",
            "1e-5",
            "100000000.0",
            "-0.0005",
        )
    ),
    '{"type":"record","name":"R","fields":[{"name":"f","type":"string","default":"\\u001f\\u007f\\u2028/<\\u00e9"}]}',
    '{"type":"record","name":"R","fields":[],"x":1.50,"y":1e3,"z":{"b":[{"d":1,"c":2}],"a":null}}',
    '{"name":"R","namespace":"a.b","type":"record","fields":[{"type":"int","name":"x","logicalType":"date"},'
    '{"name":"y","type":{"type":"int","logicalType":"date","z":1,"a":2}}]}',
    '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"enum","name":"E","symbols":["A"],"doc":"d",'
    '"aliases":["Z"]}},{"name":"b","type":"E","order":"ignore"},{"name":"c","type":["null","n.E","R"],"default":null}],'
    '"zz":1,"aa":{"b":1,"a":2}}',
    '{"type":"fixed","name":"F","size":4,"logicalType":"decimal","precision":4,"scale":2,"aliases":["q.A"]}',
    '{"type":"array","items":"string","z":1,"a":1}',
    '["null",{"type":"string","avro.java.string":"String"}]',
    '{"type":"map","values":{"type":"record","name":"x.y.Z","fields":[]}}',
    '{"type":"record","name":"R","aliases":["x.Q","P"],"fields":[{"name":"f","type":{"type":"string","z":1,'
    '"logicalType":"uuid","a":1},"zz":1,"aa":2,"aliases":["z","b"],"doc":"fd","order":"descending","default":"q"},'
    '{"name":"h","type":"float","default":1},{"name":"mm","type":{"type":"map","values":"double"},'
    '"default":{"b":1,"a":2}},{"name":"u","type":["double","null"],"default":3},{"name":"by","type":"bytes",'
    '"default":"\\u00ff"},{"name":"rec","type":{"type":"record","name":"Q","fields":[{"name":"x","type":"int"}]},'
    '"default":{"x":5}},{"name":"ar","type":{"type":"array","items":"int","q":1,"default":[]},"default":[1,2]}]}',
)
