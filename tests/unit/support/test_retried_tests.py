"""The list of tests that may be retried: what may be on it, and that it names tests that exist."""

import ast
from pathlib import Path

import pytest

from tests.support.retried_tests import LIST, NEVER_RETRIED, WrongList, read_list

REPOSITORY = LIST.parents[1]


def test_a_line_is_a_test_and_a_reason() -> None:
    line = '"tests/conformance/test_kcat.py::test_lists" = "kcat 1.7 sometimes ends by SIGSEGV"'
    reason = "kcat 1.7 sometimes ends by SIGSEGV"
    assert read_list(line) == {"tests/conformance/test_kcat.py::test_lists": reason}


@pytest.mark.parametrize("folder", sorted(NEVER_RETRIED))
def test_what_only_headrace_can_fail_is_not_retried(folder: str) -> None:
    with pytest.raises(WrongList, match=f"tests/{folder}/test_x.py::test_y may not be retried"):
        read_list(f'"tests/{folder}/test_x.py::test_y" = "a reason"')


@pytest.mark.parametrize("name", ["bench/test_x.py::test_y", "tests/docs/test_x.py::test_y[1]"])
def test_a_name_is_one_of_a_test_without_its_parameters(name: str) -> None:
    with pytest.raises(WrongList, match="may not be retried"):
        read_list(f'"{name}" = "a reason"')


def test_a_retry_needs_a_reason() -> None:
    with pytest.raises(WrongList, match="has no reason"):
        read_list('"tests/docs/test_x.py::test_y" = " "')


def test_the_list_names_tests_that_exist() -> None:
    missing = []
    for test in read_list(LIST.read_text(encoding="utf-8")):
        file, *_, name = test.split("::")
        path = REPOSITORY / file
        if not path.exists() or name not in functions(path):
            missing.append(test)
    assert not missing


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
