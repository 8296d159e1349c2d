"""The rules that keep the tree readable, checked by a machine."""

import ast
import re
from pathlib import Path

import pytest

from headrace.broker.api_table import APIS
from tools.generate_tree import PAGE, SOURCE, with_tree

MODULES = sorted(SOURCE.rglob("*.py"))
WRITTEN = [path for path in MODULES if "wire/messages" not in path.as_posix()]  # the rest is generated

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70
FORBIDDEN = re.compile(r"(manager|helper|utils?|misc|common|base|impl|handler|processor)s?")

# Longer than allowed, each for a reason.
LONG_FILES: dict[str, str] = {
    "broker/apis/fetch.py": "one API, one file",
}
LONG_FUNCTIONS: dict[str, str] = {}


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@pytest.mark.parametrize("path", WRITTEN, ids=relative)
def test_a_file_is_short_enough_to_be_read(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MAX_FILE_LINES or relative(path) in LONG_FILES


@pytest.mark.parametrize("path", WRITTEN, ids=relative)
def test_a_function_is_short_enough_to_be_understood(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            name = f"{relative(path)}:{node.name}"
            assert length <= MAX_FUNCTION_LINES or name in LONG_FUNCTIONS, f"{name}: {length} lines"


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_says_what_it_is(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, "no docstring"
    assert "licen" not in docstring.lower()


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_is_named_for_one_thing(path: Path) -> None:
    words = path.stem.split("_")
    assert not [word for word in words if FORBIDDEN.fullmatch(word)]


def test_every_api_file_is_in_the_table_and_the_other_way_round() -> None:
    on_disk = {path.stem for path in (SOURCE / "broker" / "apis").glob("*.py")} - {"__init__"}
    in_table = {module.__name__.rpartition(".")[2] for module in APIS.values()}
    assert on_disk == in_table
    assert all(module.__name__.endswith(key.name.lower()) for key, module in APIS.items())


def test_the_tree_in_the_docs_is_the_tree_on_disk() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tree(page), "run: python -m tools.generate_tree"
