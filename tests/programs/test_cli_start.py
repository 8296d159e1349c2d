"""Tools start fast: nothing heavy is imported before it is known what is wanted."""

import subprocess
import sys
import time

import pytest

from tests.programs.conftest import KAFKA_TOOLS, command, run_command

# Each costs more than a tool's whole start may.
HEAVY = (
    "confluent_kafka",
    "uvloop",
    "rich",
    "numpy",
    "kio",
    "asyncio",
    "msgspec",
    "headrace.broker",
    "headrace.settings",
)


@pytest.mark.parametrize("tool", KAFKA_TOOLS)
def test_every_tool_explains_itself(tool: str) -> None:
    output = run_command(command(tool, "--help"))
    assert (output.exit_code, output.stderr) == (0, "")
    assert output.stdout.startswith(f"usage: headrace {tool} ")


@pytest.mark.parametrize("tool", KAFKA_TOOLS)
def test_help_imports_nothing_heavy(tool: str) -> None:
    program = (
        "import sys\n"
        "from headrace.cli.main import main\n"
        f"code = main([{tool!r}, '--help'])\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_help_comes_at_once() -> None:
    times_s = []
    for _ in range(5):
        started_s = time.monotonic()
        run_command([sys.executable, "-c", "pass"])
        bare_s = time.monotonic() - started_s
        started_s = time.monotonic()
        run_command(command("topics", "--help"))
        times_s.append(time.monotonic() - started_s - bare_s)
    assert min(times_s) < 0.15
