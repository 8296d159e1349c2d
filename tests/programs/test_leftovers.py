"""A run of the tests that leaves a process on the machine fails, and says which."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.leftovers import MARK, left_behind

REPOSITORY = Path(__file__).parents[2]
# A test as it must not be: the process has no owner, and sleeps on.
FORGETFUL = """
import subprocess, sys

def test_forgets():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
"""


def run_tests(directory: Path, mark: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "1", str(directory)],
        cwd=directory,
        env={**os.environ, MARK: mark},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_process_that_is_left_fails_the_run(tmp_path: Path) -> None:
    conftest = "from tests.conftest import pytest_configure, pytest_sessionfinish\n"
    limit = "from tests.support import leftovers\nleftovers.GRACE_S = 1.0\n"
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(REPOSITORY)!r})\n{conftest}{limit}"
    )
    (tmp_path / "test_forgetful.py").write_text(FORGETFUL)
    done = run_tests(tmp_path, "forgetful")
    found = left_behind("forgetful")
    for line in found:
        os.kill(int(line.split()[0]), signal.SIGKILL)
    assert len(found) == 1
    assert "1 passed" in done.stdout
    assert f"left behind:\n  {found[0]}" in done.stdout
    assert done.returncode == 1
