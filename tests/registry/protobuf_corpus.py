"""Protobuf schemas of which each is compared with every other one, for comparing our verdicts with Confluent's."""

from collections.abc import Iterator

_BODIES = (
    "",
    "message M { }",
    "message M { int32 a = 1; }",
    "message M { int64 a = 1; }",
    "message M { sint32 a = 1; }",
    "message M { fixed32 a = 1; }",
    "message M { sfixed32 a = 1; }",
    "message M { fixed64 a = 1; }",
    "message M { bool a = 1; }",
    "message M { float a = 1; }",
    "message M { double a = 1; }",
    "message M { string a = 1; }",
    "message M { bytes a = 1; }",
    "message M { repeated int32 a = 1; }",
    "message M { repeated string a = 1; }",
    "message M { int32 b = 1; }",
    "message M { int32 a = 1; string b = 2; }",
    "message M { oneof o { int32 a = 1; } }",
    "message M { oneof o { int32 a = 1; string b = 2; } }",
    "message M { oneof o { int32 a = 1; string c = 3; } string b = 2; }",
    "message M { oneof other { int32 a = 1; string b = 2; } }",
    "message M { E a = 1; } enum E { X = 0; }",
    "message M { E a = 1; } enum E { X = 0; Y = 1; }",
    "message M { N a = 1; } message N { int32 x = 1; }",
    "message M { N a = 1; } message N { string x = 1; }",
    "message M { O a = 1; } message O { int32 x = 1; }",
    "message M { message N { int32 x = 1; } N a = 1; }",
    "message M { repeated N a = 1; } message N { int32 x = 1; }",
    "message M { map<string, int32> a = 1; }",
    "message M { map<string, int64> a = 1; }",
    "message M { map<string, string> a = 1; }",
    "message M { M a = 1; int32 b = 2; }",
    "message M { optional int32 a = 1; }",
)
_PROTO2 = (
    "message M { optional int32 a = 1; }",
    "message M { required int32 a = 1; }",
    "message M { optional int32 a = 1; required int32 b = 2; }",
    "message M { }",
)
SCHEMAS = (
    *(f'syntax = "proto3";\npackage p;\n{body}' for body in _BODIES),
    'syntax = "proto3";\npackage q;\nmessage M { int32 a = 1; }',
    *(f'syntax = "proto2";\npackage p;\n{body}' for body in _PROTO2),
)


def pairs() -> Iterator[tuple[str, str]]:
    """Every schema after every other one."""
    return ((old, new) for old in SCHEMAS for new in SCHEMAS)
