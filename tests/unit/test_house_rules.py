"""The rules that keep the tree readable, checked by a machine."""

import ast
import re
from pathlib import Path

from headrace.broker.api_table import APIS
from headrace.cli.main import TOOLS
from tools.generate_tree import PAGE, SOURCE, with_tree

MODULES = sorted(SOURCE.rglob("*.py"))
UNIT = Path(__file__).parent
OTHER_TREES = {("bench",), ("support",)}  # of tests of what is not in src/headrace
WRITTEN = [
    path for path in MODULES if "wire/messages" not in path.as_posix()
]  # the rest is generated

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70
FORBIDDEN = re.compile(r"(manager|helper|utils?|misc|common|base|impl|handler|processor)s?")

# Parts of the standard library that every thread and event loop of the process uses.
OF_THE_PROCESS = {"asyncio", "selectors", "socket", "threading", "time"}

# Longer than allowed, each for a reason.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}


def relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def docstring_of(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def test_files_are_short_enough_to_be_read() -> None:
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in WRITTEN
    }
    long = {name for name, length in lengths.items() if length > MAX_FILE_LINES}
    assert long == set(LONG_FILES)


def test_functions_are_short_enough_to_be_understood() -> None:
    long = set()
    for path in WRITTEN:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                (node.end_lineno or node.lineno) - node.lineno >= MAX_FUNCTION_LINES
            ):
                long.add(f"{relative(path)}:{node.name}")
    assert long == set(LONG_FUNCTIONS)


def test_every_module_says_what_it_is() -> None:
    assert not [relative(path) for path in MODULES if not docstring_of(path)]
    assert not [relative(path) for path in MODULES if "licen" in docstring_of(path).lower()]


def test_modules_are_named_for_one_thing() -> None:
    words = {relative(path): path.stem.split("_") for path in MODULES}
    assert not [name for name, parts in words.items() if any(map(FORBIDDEN.fullmatch, parts))]


def test_every_api_file_is_in_the_table_and_the_other_way_round() -> None:
    on_disk = {path.stem for path in (SOURCE / "broker" / "apis").glob("*.py")} - {"__init__"}
    in_table = {module.__name__.rpartition(".")[2] for module in APIS.values()}
    assert on_disk == in_table
    assert all(module.__name__.endswith(key.name.lower()) for key, module in APIS.items())


def test_unit_tests_mirror_the_source() -> None:
    """A test lies in the folder of what it tests, and its name begins with that module's, or with the folder's."""
    astray = []
    for path in sorted(UNIT.rglob("test_*.py")):
        folder = path.parent.relative_to(UNIT)
        if folder.parts[:1] in OTHER_TREES or not folder.parts:
            continue
        subjects = {module.stem for module in (SOURCE / folder).glob("*.py")} | {folder.name}
        name = path.stem.removeprefix("test_")
        is_package = (SOURCE / folder / "__init__.py").exists()
        if not is_package or not any(
            name == subject or name.startswith(f"{subject}_") for subject in subjects
        ):
            astray.append(path.relative_to(UNIT).as_posix())
    assert not astray


def test_every_command_has_a_file_of_its_name() -> None:
    on_disk = {path.stem for path in (SOURCE / "cli" / "tools").glob("*.py")} - {"__init__"}
    assert on_disk == {name.replace("-", "_") for name in TOOLS}


def test_the_tree_in_the_docs_is_the_tree_on_disk() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_tree(page), "run: python -m tools.generate_tree"


def replaced_modules(tree: ast.Module) -> list[str]:
    """Modules of the whole process of which this test file replaces an attribute."""
    found = []
    for node in ast.walk(tree):
        owner: ast.expr | None = None
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            bare = node.func.id if isinstance(node.func, ast.Name) else ""
            if name in {"setattr", "delattr", "patch", "object"} or bare in {"setattr", "patch"}:
                owner = node.args[0]
        elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = (each.value for each in targets if isinstance(each, ast.Attribute))
            # `cluster.time = …` and `cluster.time.on_sleep = …` set something of an object.
            owner = next((each for each in assigned if isinstance(each, ast.Name)), None)
        if isinstance(owner, ast.Constant) and isinstance(owner.value, str):
            found += [part for part in owner.value.split(".")[:-1] if part in OF_THE_PROCESS]
        elif isinstance(owner, ast.Name) and owner.id in OF_THE_PROCESS:
            found.append(owner.id)
        elif isinstance(owner, ast.Attribute) and owner.attr in OF_THE_PROCESS:
            found.append(owner.attr)
    return found


def test_tests_replace_nothing_for_the_whole_process() -> None:
    """A broker or a client of another test may run in the same process, and would die of the replacement."""
    offenders = {
        path.relative_to(UNIT.parent).as_posix(): found
        for path in sorted(UNIT.parent.rglob("*.py"))
        if (found := replaced_modules(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert not offenders


def test_a_replacement_for_the_whole_process_is_found_in_all_its_forms() -> None:
    for line in (
        "monkeypatch.setattr(time, 'sleep', print)",
        "monkeypatch.setattr('asyncio.sleep', print)",
        "monkeypatch.setattr(headrace.log.socket, 'socket', print)",
        "monkeypatch.delattr(socket, 'AF_UNIX')",
        "mock.patch.object(threading, 'Thread')",
        "patch('headrace.clock.time.monotonic')",
        "setattr(time, 'sleep', print)",
        "threading.Thread = print",
    ):
        assert replaced_modules(ast.parse(line)), line
    assert not replaced_modules(ast.parse("monkeypatch.setattr(fetch_loop, '_HURRY_S', 0)"))
    assert not replaced_modules(ast.parse("cluster.time.on_sleep = elect"))
