"""Schemas and JSON texts, made up from a seed: mostly right, often odd, sometimes wrong."""

from __future__ import annotations

import json
from random import Random

SCALARS = (
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(5,2)",
    "DECIMAL(38,10)",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
)
NAMES = ("a", "b", "c")

SCALAR_TEXTS = (
    *("null", "true", "false", "0", "-0", "7", "-7", "127", "200", "255", "256", "-129", "40000"),
    *("2147483648", "9223372036854775807", "9223372036854775808", "1700000000", "16777217"),
    *(
        "1.0",
        "1.50",
        "1.555",
        "-1.545",
        "1e2",
        "1e400",
        "-0.0",
        "0.001",
        "1.0E-5",
        "1.5e10",
        "999.999",
    ),
    *("NaN", "Infinity", "-Infinity", "+INF", "-INF", "+Infinity"),
    *(
        '""',
        '" "',
        '"x"',
        '"1"',
        '"1.5"',
        '"1e2"',
        '" 1.5 "',
        '"true"',
        '"NaN"',
        '"+INF"',
        '"-INF"',
    ),
    *(
        '"INF"',
        '"Infinity"',
        '"-Infinity"',
        '"é"',
        '"\\u00e9\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\ud83dx"',
    ),
    *('"\\u0000"', '"\\/"', '"a\\tb\\"c\\\\"', "'x'", "'it\"s'", '"it\\\'s"', "'it\\'s'", "'1.5'"),
    *(
        '"aGVsbG8="',
        '"aGVsbG8"',
        '"aGVs bG8="',
        '"aGVs\\nbG8="',
        '"!!"',
        '"-_8="',
        '"+/8="',
        '"aG=="',
    ),
    *('"aH=="', '"aGVsbG8=aGVs"', '"="', '"aGVs "', '"aG==x"', '"a G V s"'),
    *(
        '"2024-01-02"',
        '"2024-1-2"',
        '"2024-01"',
        '"2024"',
        '"2024-02-30"',
        '"2024-01-02x"',
        '"0001-01-01"',
    ),
    *('"2024-01-02T03:04:05Z"', '"2024-01-02T03:04:05.123456789Z"', '"2024-01-02 03:04:05"'),
    *('"2024-01-02T03:04:05.1"', '"2024-01-02T03:04"', '"2024-01-02T03"', '"2024-01-02T3:4:5"'),
    *('"2024-01-02T03:04:05+01:00"', '"2024-01-02T03:04:05+0100"', '"2024-01-02T03:04:05+01"'),
    *(
        '"2024-01-02T03:04:05 Europe/Berlin"',
        '"2024-07-02T03:04:05 Europe/Berlin"',
        '"2024-01-02T03:04:05 UTC"',
    ),
    *('"2024-01-02T03:04:05+1:00"', '"2024-01-02T03:04:05-17:59"', '"2024-01-02T03:04:05+19:00"'),
    *('"2024-01-02T03:04:05.123 Z"', '"2024-01-02 03:04:05 +01:00"', '"2024-01-02T24:00:00Z"'),
    *(
        '"2024-01-02T03:04:60Z"',
        '"2024-01-02T"',
        '"2024-01-02T03:04:05,1Z"',
        '" 2024-01-02 "',
        '"20240102x"',
    ),
    *(
        '"2024-01-02T03:04:05.Z"',
        '"2024-03-31T02:30:00 Europe/Berlin"',
        '"1500-01-01T00:00:00Z"',
        '"now"',
    ),
    *(
        "{}",
        '{"b":1}',
        '{"b":1,"b":2}',
        '{"b" : 1.50,  "c":[1, "x\\ty"]}',
        "{'b':NaN}",
        '{"b":"\\ud83d"}',
    ),
    *("[]", "[1,null]", '[1, {"x":"\\u00e9"}]', '["x"]', "[1.0]", "[[1]]", '[{"b":1}]'),
    *(
        "01",
        "+1",
        ".5",
        "1.",
        "tru",
        "TRUE",
        '"\\q"',
        '"a\tb"',
        "",
        "{b:1}",
        "[1,]",
        '{"b":1,}',
        '"',
    ),
)
WHOLE_TEXTS = (
    *(
        "null",
        "1",
        '"x"',
        "[]",
        '[{"a":1}]',
        "{",
        '{"a":1',
        '{"a" 1}',
        "{a:1}",
        '{"a":1,}',
        "/*c*/{}",
    ),
    *(
        "{}",
        " {} ",
        '{"A":1}',
        '{"":1,"a":1}',
        "{'a':1}",
        '\n{"a":\n1}\n',
        '\ufeff{"a":1}',
        '{"a":1 "b":2}',
    ),
)


def schema(random: Random, depth: int = 2) -> str:
    """The fields of a struct, as DDL."""
    names = NAMES[: random.randint(1, len(NAMES))]
    return ", ".join(f"{name} {_type(random, depth)}" for name in names)


def _type(random: Random, depth: int) -> str:
    kind = random.random()
    if depth and kind < 0.15:
        inner = ", ".join(f"{name}: {_type(random, depth - 1)}" for name in NAMES[1:])
        return f"STRUCT<{inner}>"
    if depth and kind < 0.3:
        return f"ARRAY<{_type(random, depth - 1)}>"
    if depth and kind < 0.4:
        return f"MAP<STRING, {_type(random, depth - 1)}>"
    return random.choice(SCALARS)


def texts(random: Random, count: int) -> list[str]:
    """Every odd scalar as a field of its own, and objects of several."""
    alone = [f'{{"a":{each}}}' for each in SCALAR_TEXTS]
    ignored = [f'{{"a":1,"z":{each}}}' for each in SCALAR_TEXTS]
    return [*alone, *ignored, *WHOLE_TEXTS, *(_object(random, 2) for _ in range(count))]


def _object(random: Random, depth: int) -> str:
    fields = [
        f"{_name(random)}{random.choice((':', ' : '))}{_value(random, depth)}"
        for _ in range(random.randint(0, 4))
    ]
    return "{" + random.choice((",", ", ", "\n,")).join(fields) + "}"


def _name(random: Random) -> str:
    name = random.choice((*NAMES, "z"))
    return f"'{name}'" if random.random() < 0.05 else json.dumps(name)


def _value(random: Random, depth: int) -> str:
    kind = random.random()
    if depth and kind < 0.2:
        return _object(random, depth - 1)
    if depth and kind < 0.35:
        return "[" + ",".join(_value(random, depth - 1) for _ in range(random.randint(0, 3))) + "]"
    return random.choice(SCALAR_TEXTS)
