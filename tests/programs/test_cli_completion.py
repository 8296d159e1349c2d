"""Completion, asked for as the shells ask."""

import shutil
import subprocess
from pathlib import Path

import pytest

from headrace.cli.main import TOOLS
from tests.programs.conftest import command, run_command

ASK_BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
function_of_command=$(complete -p "$1")
[[ $function_of_command == *"-F _headrace "* ]] || exit 1
_headrace
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "headrace.bash"
    output = run_command(command("completion", "bash"))
    assert output.exit_code == 0
    path.write_text(output.stdout)
    return path


def bash_completes(script: Path, *words: str, cwd: Path | None = None) -> set[str]:
    """What bash would offer for the last word."""
    done = subprocess.run(
        ["bash", "-c", ASK_BASH, "bash", str(script), *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
    )
    assert done.stderr == ""
    return set(done.stdout.split())


def test_tools(bash_script: Path) -> None:
    assert bash_completes(bash_script, "headrace", "") == {*TOOLS, "--help", "--version"}
    assert bash_completes(bash_script, "headrace", "console-") == {
        "console-producer",
        "console-consumer",
    }


def test_options_and_their_values(bash_script: Path, tmp_path: Path) -> None:
    assert bash_completes(bash_script, "headrace", "topics", "--des") == {"--describe"}
    assert bash_completes(bash_script, "headrace", "topics", "--output", "") == {"text", "json"}
    assert bash_completes(bash_script, "headrace", "leader-election", "--election-type", "p") == {
        "preferred"
    }
    assert bash_completes(bash_script, "headrace", "cluster", "list") == {"list-endpoints"}
    assert bash_completes(bash_script, "headrace", "topics", "--topic", "") == set()
    assert "--zookeeper" not in bash_completes(bash_script, "headrace", "topics", "--")


def test_files(bash_script: Path, tmp_path: Path) -> None:
    (tmp_path / "server.properties").touch()
    for words in (["server-start", "ser"], ["topics", "--command-config", ""]):
        found = bash_completes(bash_script, "headrace", *words, cwd=tmp_path)
        assert found == {"server.properties"}


def test_kafkas_names(bash_script: Path) -> None:
    assert bash_completes(bash_script, "kafka-topics.sh", "--des") == {"--describe"}


def test_fish() -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("there is no fish here")
    script = run_command(command("completion", "fish")).stdout
    asked = "\ncomplete -C 'headrace leader-election --election-type '\n"
    done = subprocess.run(
        [fish, "--no-config"], input=script + asked, capture_output=True, text=True, check=True
    )
    assert {line.split("\t")[0] for line in done.stdout.splitlines()} == {"preferred", "unclean"}


def test_zsh_reads_its_script(tmp_path: Path) -> None:
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("there is no zsh here")
    path = tmp_path / "_headrace"
    path.write_text(run_command(command("completion", "zsh")).stdout)
    subprocess.run([zsh, "-n", str(path)], check=True)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_of_every_tool(shell: str) -> None:
    script = run_command(command("completion", shell)).stdout
    assert not [tool for tool in TOOLS if tool not in script]
    assert "election-type" in script
