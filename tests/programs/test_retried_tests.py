"""A run of the tests retries what is on the list, nothing else, and prints each retry."""

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.support.retried_tests import RetriedTests

def pytest_configure(config):
    config.pluginmanager.register(RetriedTests({{"test_twice.py::test_on_the_list": "the moon"}}))
"""
# Each test fails at its first attempt and passes at its second.
TESTS = """
from pathlib import Path
import pytest

def attempt(name):
    file = Path(__file__).with_name(name)
    first = not file.exists()
    file.touch()
    assert not first, f"first attempt of {name}"

@pytest.mark.parametrize("number", [1, 2])
def test_on_the_list(number):
    attempt(f"listed-{number}")

def test_not_on_the_list():
    attempt("other")
"""


def run_tests(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (directory / "conftest.py").write_text(CONFTEST)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_only_what_is_on_the_list_is_retried(tmp_path: Path) -> None:
    (tmp_path / "test_twice.py").write_text(TESTS)
    done = run_tests(tmp_path, "-n", "2", "--dist", "loadfile")
    assert "1 failed, 2 passed, 2 rerun" in done.stdout
    report = done.stdout.partition("= retried tests =")[2]
    for number in (1, 2):
        assert f"test_on_the_list[{number}] (call), on the list because: the moon" in report
        assert f"first attempt of listed-{number}" in report
    assert "FAILED test_twice.py::test_not_on_the_list" in report
    assert done.returncode == 1


def test_a_mark_does_not_replace_the_list(tmp_path: Path) -> None:
    (tmp_path / "test_marked.py").write_text(
        "import pytest\n\n@pytest.mark.flaky\ndef test_marked():\n    pass\n"
    )
    done = run_tests(tmp_path)
    assert "test_marked is marked flaky: put it on the list retried_tests.toml" in done.stderr
    assert done.returncode == 4
