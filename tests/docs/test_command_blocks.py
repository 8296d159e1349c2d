"""Every command on our pages works as it stands there: pasted into a shell, in the order of the page.

A *world* is a machine of its own with a copy of this repository, and the pages that are gone through on it, one after the other in
one shell. The pages about Spark are gone through by `tests/pipelines/test_pages.py`. What is not to be executed stands in a fence
marked as `text`, or on a page of `UNMARKED`, with the reason.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from headrace.cli.main import TOOLS
from tests.docs.own_machine import NOT_ALLOWED
from tests.docs.pages import ROOT, Block, all_pages, blocks_of, indented_blocks_of
from tests.pipelines.test_pages import PAGES, PAGES_ABOUT_SCHEMAS
from tests.support.tools import require_all

TIMEOUT_S = 240
USUAL_PORTS = (2181, 8081, 8082, 9092, 9093, 9094, 9192, 9308)


@dataclass(frozen=True, slots=True)
class World:
    """Pages that are gone through together.

    `has_broker`: one runs on localhost:9092 before the first of them. `needs`: programs that a machine may lack.
    """

    pages: tuple[str, ...]
    has_broker: bool = False
    needs: tuple[str, ...] = ()


# In this order: some go on with what others wrote.
TOOLS_OF_KAFKA = (
    *(
        "topics",
        "console-producer",
        "console-consumer",
        "consumer-groups",
        "configs",
        "get-offsets",
    ),
    *("delete-records", "log-dirs", "dump-log", "broker-api-versions", "cluster", "perf-tests"),
    *("verifiable", "reassign-partitions", "leader-election", "storage", "completion"),
    "transactions",
    "features",
)
WORLDS = {
    "readme": World(("README.md",)),
    "testing": World(("docs/testing.md",)),
    "cluster": World(("docs/cluster.md",)),
    "operating": World(("docs/operating/README.md",), has_broker=True),
    "operating-cluster": World(("docs/operating/cluster.md",)),
    "coming-from-kafka": World(("docs/coming-from-kafka.md",)),
    "tools": World(
        tuple(
            f"docs/tools/{name}.md"
            for name in ("dev", "top", "doctor", "server-start", "zookeeper-start")
        )
    ),
    "kafka-tools": World(
        tuple(f"docs/tools/{name}.md" for name in TOOLS_OF_KAFKA), has_broker=True
    ),
    "schema-registry": World(
        ("docs/schema-registry.md", "docs/tools/schema-registry-start.md"), needs=("curl",)
    ),
    "rest-proxy": World(("docs/rest-proxy.md", "docs/tools/rest-start.md"), needs=("curl",)),
    "around": World(("docs/metrics.md", "docs/testing/simulation.md"), needs=("curl",)),
}
# Pages whose Python is complete, with a broker on localhost:9092; elsewhere it is there to be read.
PYTHON_PAGES = ("README.md", "docs/testing.md")
# What a test of its own shows, because it takes minutes.
SHOWN_ELSEWHERE = {"make demo\n": "tests/programs/test_demo.py", "make test\n": ".ci/run"}
# Pages with commands that nobody executes, and why.
UNMARKED = {
    "docs/benchmarks/README.md": "takes an hour; tests/unit/bench tries the harness",
    "docs/pipelines.md": "the installation, and a broker that runs on",
}


def commands_of(page: str) -> list[Block]:
    return [block for block in blocks_of(page) if block.is_commands]


def test_every_page_with_commands_is_gone_through() -> None:
    here = {page for world in WORLDS.values() for page in world.pages}
    gone_through = here | {f"docs/{page}" for page in (*PAGES, *PAGES_ABOUT_SCHEMAS)}
    assert {page for page in all_pages() if commands_of(page)} == gone_through


def test_every_tool_is_in_the_table_of_tools() -> None:
    table = (ROOT / "docs" / "tools" / "README.md").read_text()
    rows = " ".join(re.findall(r"^\| \[(.*?)\]", table, re.MULTILINE))
    missing = [name for name in TOOLS if not re.search(rf"\b{name}\b", rows)]
    assert missing == []


def test_commands_are_marked_as_such() -> None:
    hidden = {
        block.page: block.line
        for page in all_pages()
        for block in [*blocks_of(page), *indented_blocks_of(page)]
        if not block.is_commands and block.looks_like_commands
    }
    assert set(hidden) <= set(UNMARKED), f"mark them as ```sh: {hidden}"


@pytest.fixture
def machine() -> Iterator[Path]:
    """A copy of the repository in which commands may do what they like; not under /tmp, which is the machine's own."""
    directory = Path(tempfile.mkdtemp(prefix="headrace-docs-", dir="/var/tmp"))
    try:
        _copy_repository(directory)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _copy_repository(directory: Path) -> None:
    for entry in ROOT.iterdir():
        if entry.name in ("bin", "config", "examples"):
            shutil.copytree(entry, directory / entry.name)
        elif not entry.name.startswith("."):
            (directory / entry.name).symlink_to(entry)
    # `make setup` must find that everything is installed, and must not touch what is.
    venv = directory / ".venv"
    venv.mkdir()
    for entry in Path(sys.prefix).iterdir():
        if entry.name != ".installed":
            (venv / entry.name).symlink_to(entry)
    (venv / ".installed").touch()


def go_through(directory: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script on a machine of its own, or on this one where that is not allowed and its ports are free."""
    (directory / "script.sh").write_text(script)
    home = directory / "home"
    home.mkdir(exist_ok=True)
    unwanted = ("XDG_DATA_HOME", "XDG_STATE_HOME", "HEADRACE_STATE_DIR", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment |= {
        "HOME": str(home),
        "PATH": f"{directory / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
    }
    shell = ["bash", "script.sh"]
    program = [sys.executable, str(Path(__file__).with_name("own_machine.py")), str(directory)]
    done = _run([*program, *shell], directory, environment)
    if done.returncode != NOT_ALLOWED:
        return done
    busy = [port for port in USUAL_PORTS if _is_busy(port)]
    if busy:
        give_up(f"no machine of its own ({done.stderr.strip()}), and ports {busy} are taken here")
    return _run(shell, directory, environment)


def give_up(reason: str) -> NoReturn:
    if require_all():
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def _run(
    command: list[str], directory: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def _is_busy(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# Not a job of the shell, so that a page's `wait` and `jobs` see only what the page started.
BROKER = """
setsid headrace server-start > the-broker.log 2>&1 & disown
for attempt in {1..200}; do grep -q 'is ready' the-broker.log && break; sleep 0.1; done
"""


def script_of(blocks: list[Block], *, has_broker: bool) -> str:
    """The blocks as somebody would paste them, with a remark before each so that a failure names it."""
    parts = ["set -e -o pipefail", BROKER if has_broker else ""]
    for block in blocks:
        if block.text not in SHOWN_ELSEWHERE:
            parts += [f"echo '=== {block.page}:{block.line}'", block.text]
    return "\n".join(parts)


@pytest.mark.parametrize("name", WORLDS)
def test_commands_work_as_they_stand(name: str, machine: Path) -> None:
    world = WORLDS[name]
    missing = [program for program in world.needs if shutil.which(program) is None]
    if missing:
        give_up(f"{', '.join(missing)} not installed")
    blocks = [block for page in world.pages for block in commands_of(page)]
    assert blocks
    done = go_through(machine, script_of(blocks, has_broker=world.has_broker))
    story = f"{done.stdout[-3000:]}\n--- stderr\n{done.stderr[-3000:]}"
    assert done.returncode == 0, story
    assert "Traceback" not in done.stdout + done.stderr, story


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_programs_work_as_they_stand(page: str, machine: Path) -> None:
    parts = ["set -e", BROKER]
    for block in blocks_of(page):
        if block.language == "python":
            name = f"line_{block.line}.py"
            (machine / name).write_text(block.text)
            parts += [f"echo '=== {page}:{block.line}'", how_to_run(block.text).format(name)]
    done = go_through(machine, "\n".join(parts))
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n--- stderr\n{done.stderr[-3000:]}"


def how_to_run(program: str) -> str:
    """Tests are for pytest, pipelines for Spark (which need not run them: their file is checked), the rest for Python."""
    if "def test_" in program:
        return "python -m pytest -q -p no:cacheprovider -c /dev/null {}"
    if "@flow" in program:
        return "headrace pipeline validate {} --quick"
    return "python {}"
