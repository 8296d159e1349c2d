"""JSON schemas of which each is compared with every other one: every difference that has a name occurs."""

from typing import Any

Schema = Any

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
NULL: Schema = {"type": "null"}
BOOLEAN: Schema = {"type": "boolean"}


def of(kind: str, **keywords: Schema) -> Schema:
    return {"type": kind, **keywords}


def with_properties(*, closed: bool = False, needs: str = "", **properties: Schema) -> Schema:
    schema = of("object", properties=properties)
    if closed:
        schema["additionalProperties"] = False
    if needs:
        schema["required"] = needs.split()
    return schema


def tuple_of(*items: Schema, **keywords: Schema) -> Schema:
    return of("array", items=list(items), **keywords)


_WITH_DEFAULT = of("integer", default=1)
_A = with_properties(a=STRING)

SCHEMAS: tuple[Schema, ...] = (
    True, False, {}, STRING, INTEGER, NUMBER, BOOLEAN, NULL, of("array"), of("object"),
    {"type": ["string", "null"]}, {"type": ["string", "integer"]}, {"type": ["null", "string", "integer"]},
    # Limits.
    of("string", maxLength=5), of("string", maxLength=9), of("string", minLength=5), of("string", minLength=2),
    of("string", pattern="a"), of("string", pattern="b"), of("string", format="date"), {"format": "date"},
    {"maxLength": 5}, of("number", maximum=5), of("number", maximum=9), of("number", minimum=5),
    of("number", minimum=2), of("integer", minimum=2), of("number", exclusiveMinimum=5),
    of("number", exclusiveMinimum=7), of("number", exclusiveMaximum=5), of("number", exclusiveMaximum=7),
    of("number", multipleOf=4), of("number", multipleOf=2), of("number", multipleOf=3), of("number", multipleOf=0.5), {"minimum": 3},
    {"minimum": 3, "maxLength": 4},
    # Values.
    {"enum": ["a", "b"]}, {"enum": ["a", "b", "c"]}, {"enum": ["a"]}, {"enum": ["x"]}, {"enum": [1, 2]},
    of("string", enum=["a", "b"]), of("string", enum=["a"]), {"const": "a"}, {"const": "b"},
    # Combinations.
    {"not": STRING}, {"not": {"type": ["string", "integer"]}}, {"not": of("string", maxLength=3)},
    {"oneOf": [STRING, INTEGER]}, {"oneOf": [STRING]}, {"oneOf": [STRING, INTEGER, BOOLEAN]},
    {"oneOf": [INTEGER, STRING]}, {"oneOf": [STRING, STRING]}, {"anyOf": [STRING, INTEGER]}, {"anyOf": [STRING]},
    {"anyOf": [STRING, NUMBER]}, {"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 5}]},
    {"allOf": [STRING, {"maxLength": 5}, {"minLength": 1}]}, {"allOf": [INTEGER, {"minimum": 1}]},
    of("string", oneOf=[{"maxLength": 3}, {"minLength": 9}]), {"if": STRING, "then": {"maxLength": 4}},
    # Arrays.
    of("array", items=STRING), of("array", items=INTEGER), of("array", items=NUMBER), of("array", items={}),
    of("array", items=True), of("array", items=False), {"items": STRING}, of("array", maxItems=5),
    of("array", maxItems=9), of("array", minItems=5), of("array", minItems=1), of("array", uniqueItems=True),
    of("array", contains=STRING), tuple_of(STRING), tuple_of(STRING, INTEGER), tuple_of(STRING, {}),
    tuple_of(STRING, additionalItems=False), tuple_of(STRING, INTEGER, additionalItems=False),
    tuple_of(STRING, False, additionalItems=False), tuple_of(STRING, additionalItems=INTEGER),
    tuple_of(STRING, INTEGER, additionalItems=INTEGER), tuple_of(STRING, STRING, additionalItems=INTEGER),
    # Objects.
    _A, with_properties(a=INTEGER), with_properties(a=STRING, b=INTEGER), with_properties(a=STRING, b={}),
    with_properties(a=STRING, b=True), with_properties(needs="a", a=STRING, b=INTEGER),
    with_properties(needs="b", a=STRING, b=INTEGER), with_properties(needs="b", a=STRING, b=_WITH_DEFAULT),
    with_properties(needs="a", a=STRING), with_properties(needs="a", a=of("string", default="x")),
    with_properties(closed=True, a=STRING), with_properties(closed=True, a=STRING, b=INTEGER),
    with_properties(closed=True, a=STRING, b=False), with_properties(closed=True, needs="b", a=STRING, b=INTEGER),
    with_properties(closed=True, needs="b", a=STRING, b=_WITH_DEFAULT), {**_A, "additionalProperties": INTEGER},
    {**_A, "additionalProperties": NUMBER}, {**_A, "additionalProperties": {}}, {**_A, "additionalProperties": True},
    {**with_properties(a=STRING, b=INTEGER), "additionalProperties": INTEGER},
    {**with_properties(a=STRING, b=STRING), "additionalProperties": INTEGER},
    {**_A, "patternProperties": {"^b": INTEGER}},
    {**with_properties(closed=True, a=STRING, b=INTEGER), "patternProperties": {"^b": INTEGER}},
    {**with_properties(a=STRING, c=INTEGER), "patternProperties": {"^b": INTEGER}},
    of("object", maxProperties=3), of("object", maxProperties=5), of("object", minProperties=3),
    of("object", minProperties=1), of("object", dependencies={"a": ["b"]}),
    of("object", dependencies={"a": ["b", "c"]}), of("object", dependencies={"a": ["c"]}),
    of("object", dependencies={"a": {"required": ["b"]}}),
    of("object", dependencies={"a": {"required": ["b"], "properties": {"b": STRING}}}),
    of("object", propertyNames={"maxLength": 3}), {"properties": {"a": STRING}}, {"required": ["a"]},
    {"properties": {"a": STRING}, "maxLength": 3},
    # References.
    {"$ref": "#/definitions/x", "definitions": {"x": STRING}}, {"$ref": "#/definitions/x", "definitions": {"x": INTEGER}},
    {**with_properties(a={"$ref": "#/definitions/x"}), "definitions": {"x": STRING}},
    with_properties(next={"$ref": "#"}, v=INTEGER), with_properties(next={"$ref": "#"}, v=STRING),
    with_properties(next={"$ref": "#"}, v=NUMBER), with_properties(next={"oneOf": [{"$ref": "#"}, NULL]}, v=INTEGER),
    # Others.
    {"title": "x", "type": "string", "description": "d", "default": "q"}, of("string", **{"connect.type": "bytes"}),
    of("number", **{"connect.type": "bytes"}),
)  # fmt: skip

_MODERN: tuple[Schema, ...] = (
    {}, STRING, INTEGER, {"type": ["string", "null"]}, {"type": ["string", "null"], "maxLength": 3}, {"maxLength": 3},
    of("string", maxLength=3), of("string", minimum=3), {"enum": ["a"]}, {"enum": ["a", "b"]}, {"const": 1},
    {"not": STRING}, {"oneOf": [STRING, INTEGER]}, {"anyOf": [STRING, INTEGER]}, {"allOf": [STRING, {"maxLength": 5}]},
    {**_A, "allOf": [{"required": ["a"]}]}, of("array", items=STRING), of("array", prefixItems=[STRING]),
    of("array", prefixItems=[STRING, INTEGER]), of("array", prefixItems=[STRING], items=False),
    of("array", prefixItems=[STRING, INTEGER], items=False), of("array", prefixItems=[STRING], items=INTEGER),
    of("array", items=False), of("array", items=True), of("array", unevaluatedItems=False),
    of("array", unevaluatedItems=True), of("array", unevaluatedItems=STRING),
    of("array", prefixItems=[STRING], unevaluatedItems=INTEGER), of("array", contains=STRING),
    of("array", contains=STRING, minContains=2), of("array", contains=STRING, maxContains=5),
    of("array", contains=STRING, maxContains=9, minContains=0), _A, with_properties(a=STRING, b=INTEGER),
    {**_A, "unevaluatedProperties": False}, {**with_properties(a=STRING, b=INTEGER), "unevaluatedProperties": False},
    {**_A, "unevaluatedProperties": INTEGER}, {**_A, "unevaluatedProperties": True},
    {**_A, "unevaluatedProperties": NUMBER}, with_properties(closed=True, a=STRING),
    of("object", dependentRequired={"a": ["b"]}), of("object", dependentRequired={"a": ["b", "c"]}),
    of("object", dependentSchemas={"a": {"required": ["b"]}}), {"properties": {"a": STRING}},
    {"$ref": "#/$defs/x", "$defs": {"x": STRING}}, {"$ref": "#/$defs/x", "$defs": {"x": INTEGER}},
    {"$ref": "#/$defs/x", "maxLength": 4, "$defs": {"x": STRING}}, with_properties(n={"$ref": "#"}, v=INTEGER),
    with_properties(n={"$ref": "#"}, v=STRING), {"if": STRING, "then": {"maxLength": 3}}, of("string", format="date"),
    with_properties(a=with_properties(b=STRING)), with_properties(a=with_properties(b=INTEGER)),
)  # fmt: skip
MODERN_SCHEMAS: tuple[Schema, ...] = tuple(
    {"$schema": "https://json-schema.org/draft/2020-12/schema", **each} for each in _MODERN
)
# Schemas of which the texts are compared.
TEXTS = (
    '{"type":"number","maximum":1.0,"minimum":1e2,"multipleOf":0.10,"default":1E+3,"title":"\\u00e9\\/"}',
    '{ "b" : 1, "a" : { "d" : [ 1, 2 ], "c" : null } }',
    '{"title":"\\u001f\\u007f\\u2028 \\\\u001f \\"q\\" \\t"}',
    "true",
    '{"enum":[1,1.0,-0.0,12345678901234567890,1e400]}',
)
