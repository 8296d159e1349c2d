"""The commands in the pages about pipelines work as they stand there, on a machine without Java."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipelines.pipeline_process import QUICK_JAVA
from tests.support.registry_process import RegistryProcess
from tests.support.spark_topics import Topics

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("pipelines.md", "tools/pipeline.md", "tools/sql.md", "exactly-once.md")
PAGES_ABOUT_SCHEMAS = ("schemas-in-spark.md", "schema-evolution.md")
COMMANDS = re.compile(r"^```(?:sh|bash)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOUND = """\
word | n
-----+--
be   | 2
not  | 1
or   | 1
to   | 2
"""


@pytest.mark.timeout(600)
def test_commands_work_as_they_stand(own_topics: Topics, tmp_path: Path) -> None:
    assert shutil.which("java") is None
    own_topics.create_named("dead-letters")
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "JDK_JAVA_OPTIONS": QUICK_JAVA,
        "HEADRACE_STATE_DIR": str(tmp_path / "state"),
    }
    told = ""
    for page in PAGES:
        for block in COMMANDS.findall((DOCS / page).read_text()):
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", _here(block, own_topics)],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=400,
                check=False,
            )
            assert done.returncode == 0, f"{page}: {done.stdout}{done.stderr}"
            told += done.stdout + done.stderr
    assert FOUND in told
    assert "receipt for commit 0\nreceipt for commit 1\nreceipt for commit 2\n" in told
    assert "receipt for abort" not in told
    assert "word-counts: offsets 0: 0-" in told, "which offsets were covered"
    assert '{"rows": [{"n": 1}], "covered": [{"topic": "lines", "ranges": [[0, 0, 1]]}]}' in told
    assert '{"name": "words", "state": "finished"' in told


def _here(block: str, topics: Topics) -> str:
    return block.replace("localhost:9092", topics.bootstrap_servers)


@pytest.mark.timeout(2000)
def test_the_pages_about_schemas_work_as_they_stand(own_topics: Topics, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    with RegistryProcess(tmp_path / "registry", own_topics.bootstrap_servers) as registry:
        registry.await_primary()
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "JDK_JAVA_OPTIONS": QUICK_JAVA,
            "HEADRACE_STATE_DIR": str(tmp_path / "state"),
            "HEADRACE_SCHEMA_REGISTRY": registry.url,
        }

        blocks = [
            block
            for page in PAGES_ABOUT_SCHEMAS
            for block in COMMANDS.findall((DOCS / page).read_text())
        ]
        script = "\n".join(f"echo '=== block {number}' >&2\n{each}" for number, each in enumerate(blocks))  # fmt: skip
        script = _here(script, own_topics).replace("http://localhost:8081", registry.url)
        try:
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", script],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=1800,
                check=False,
            )
            log = tmp_path / "run.log"
            told = log.read_text() if log.exists() else ""
            assert done.returncode == 0, f"{done.stdout}{done.stderr}{told}"
        finally:
            subprocess.run(
                ["headrace", "pipeline", "stop", "checked_orders"],
                env=environment,
                capture_output=True,
                check=False,
            )
    assert _versions(own_topics) == {
        "priced-value": 1,
        "orders-value": 3,
        "checked-orders-value": 3,
    }
    assert own_topics.read("unreadable-orders") == []


def _versions(topics: Topics) -> dict[str, int]:
    """How many versions each subject has, as the registry's topic tells."""
    keys = [json.loads(each.key) for each in topics.read("_schemas") if each.key is not None]
    schemas = [each for each in keys if each["keytype"] == "SCHEMA"]
    return {each["subject"]: each["version"] for each in schemas}
