"""docs/protocol-pitfalls.md has every number, and names tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "protocol-pitfalls.md"
PITFALLS = 70

_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


@cache
def names_in(path: str) -> frozenset[str]:
    module = ast.parse((ROOT / "tests" / path).read_text())
    return frozenset(
        node.name
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def test_every_pitfall_has_a_test_that_exists_or_a_reason() -> None:
    rows = _ROW.findall(PAGE.read_text())
    assert [int(number) for number, _, _ in rows] == list(range(1, PITFALLS + 1))
    for number, _, shown_by in rows:
        named = _TEST.findall(shown_by)
        assert named or shown_by.startswith("does not apply yet: "), number
        for path, name in named:
            assert name in names_in(path), f"{number}: tests/{path} has no {name}"
