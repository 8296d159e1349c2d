"""The pages of docs/tools/: one for each tool, and their commands work as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.programs.conftest import KAFKA_TOOLS
from tests.support.broker import bootstrap
from tests.support.headrace_process import HeadraceProcess

PAGES = Path(__file__).parents[2] / "docs" / "tools"
ORDER = (
    *(
        "topics",
        "console-producer",
        "console-consumer",
        "consumer-groups",
        "configs",
        "get-offsets",
    ),
    *("delete-records", "log-dirs", "broker-api-versions", "cluster", "perf-tests", "verifiable"),
    *("reassign-partitions", "leader-election", "storage", "completion"),
)
FENCED = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_tool_has_a_line_in_the_table() -> None:
    table = (PAGES / "README.md").read_text()
    missing = [
        name for name in KAFKA_TOOLS if not re.search(rf"^\| \[.*\b{name}\b", table, re.MULTILINE)
    ]
    assert missing == []


def test_commands_work_as_they_stand(tmp_path: Path) -> None:
    with_commands = {path.stem for path in PAGES.glob("*.md") if FENCED.search(path.read_text())}
    assert with_commands == set(ORDER)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with HeadraceProcess(tmp_path / "broker") as broker:
        for page in ORDER:
            for block in FENCED.findall((PAGES / f"{page}.md").read_text()):
                script = block.replace("localhost:9092", bootstrap(broker))
                done = subprocess.run(
                    ["bash", "-e", "-o", "pipefail", "-c", script],
                    cwd=tmp_path,
                    env={**os.environ, "PATH": path},
                    capture_output=True,
                    text=True,
                    timeout=60,
                    check=False,
                )
                assert done.returncode == 0, f"{page}: {done.stdout}{done.stderr}"
                assert "Error" not in done.stdout, f"{page}: {done.stdout}"
