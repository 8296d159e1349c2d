"""`headrace consumer-groups` against a broker."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.programs.conftest import Headrace, Unique, command, parsed


@pytest.fixture
def group(headrace: Headrace, topic: str, unique: Unique) -> str:
    """A group that has read 4 of the topic's 10 records and left."""
    name = unique("group")
    lines = b"".join(b"same\t%d\n" % n for n in range(10))  # one key, one partition
    headrace(
        *("console-producer", "--topic", topic, "--reader-property", "parse.key=true"), stdin=lines
    )
    headrace(
        *("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", "4"),
        *("--group", name),
    )
    return name


@contextmanager
def member(address: str, topic: str, group: str) -> Iterator[None]:
    """A consumer that stays in the group."""
    words = command(
        *("console-consumer", "--bootstrap-server", address, "--topic", topic),
        *("--from-beginning", "--group", group),
    )
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as consumer:
        try:
            assert consumer.stdout is not None
            consumer.stdout.readline()
            yield
        finally:
            consumer.terminate()


def total_lag(headrace: Headrace, group: str) -> int:
    [described] = parsed(
        headrace("consumer-groups", "--describe", "--group", group, "--output", "json")
    )
    return sum(each["lag"] for each in described["partitions"])


def test_an_empty_group(headrace: Headrace, topic: str, group: str) -> None:
    assert group in headrace("consumer-groups", "--list").stdout.splitlines()
    states = headrace("consumer-groups", "--list", "--state", "empty").stdout
    assert [line.split() for line in states.splitlines() if line.startswith(group + " ")] == [
        [group, "Empty"]
    ]
    described = headrace("consumer-groups", "--describe", "--group", group)
    assert described.stderr == f"\nConsumer group '{group}' has no active members.\n"
    blank, header, *rows = described.stdout.splitlines()
    assert blank == ""
    assert header.split()[:6] == [
        *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG")
    ]
    assert {row.split()[1] for row in rows} == {topic}
    state = headrace("consumer-groups", "--describe", "--group", group, "--state")
    assert state.stdout.split()[-2:] == ["Empty", "0"]


def test_a_group_with_a_member(headrace: Headrace, address: str, topic: str, group: str) -> None:
    with member(address, topic, group):
        members = headrace("consumer-groups", "--describe", "--group", group, "--members")
        assert members.stderr == ""
        [row] = members.stdout.splitlines()[2:]
        assert row.split()[0] == group
        assert row.split()[3:] == ["console-consumer", "2"]
        verbose = headrace(
            "consumer-groups", "--describe", "--group", group, "--members", "--verbose"
        )
        assert f"{topic}:0,1" in verbose.stdout
        refused = headrace(
            *("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic),
            *("--to-earliest", "--execute"),
        )
        assert "is inactive, but the current state is Stable." in refused.stdout
        deleted = headrace("consumer-groups", "--delete", "--group", group)
        assert f"* Group '{group}' could not be deleted due to: NON_EMPTY_GROUP" in deleted.stdout


@pytest.mark.parametrize(
    ("scenario", "lag"),
    [
        (["--to-earliest"], 10),
        (["--to-latest"], 0),
        (["--to-offset", "0"], 10),
        (["--to-offset", "1000"], 0),
        (["--by-duration", "P1D"], 10),
        (["--to-datetime", "2100-01-01T00:00:00.000"], 0),
    ],
)
def test_offsets_are_reset(
    headrace: Headrace, topic: str, group: str, scenario: list[str], lag: int
) -> None:
    reset = ("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, *scenario)
    dry = headrace(*reset, "--dry-run").stdout
    assert total_lag(headrace, group) == 6
    assert headrace(*reset, "--execute").stdout == dry
    assert total_lag(headrace, group) == lag


def test_offsets_are_shifted_and_kept(headrace: Headrace, topic: str, group: str) -> None:
    reset = ("consumer-groups", "--reset-offsets", "--group", group, "--execute")
    headrace(*reset, "--topic", topic, "--to-latest")
    headrace(*reset, "--all-topics", "--shift-by", "-3")
    assert total_lag(headrace, group) == 3
    headrace(*reset, "--all-topics", "--to-current")
    assert total_lag(headrace, group) == 3


def test_a_plan_is_exported_and_carried_out(
    headrace: Headrace, topic: str, group: str, tmp_path: Path
) -> None:
    reset = ("consumer-groups", "--reset-offsets", "--group", group)
    exported = headrace(*reset, "--topic", topic, "--to-earliest", "--export", "--dry-run")
    assert exported.stdout == f"{topic},0,0\n{topic},1,0\n\n"
    plan = tmp_path / "plan.csv"
    plan.write_text(exported.stdout)
    headrace(*reset, "--from-file", str(plan), "--execute")
    assert total_lag(headrace, group) == 10


def test_offsets_and_groups_are_deleted(headrace: Headrace, topic: str, group: str) -> None:
    deleted = headrace("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert deleted.stdout.startswith(
        f"Request succeeded for deleting offsets from group {group}.\n"
    )
    assert deleted.stdout.count("Successful") == 2
    gone = headrace("consumer-groups", "--delete", "--group", group)
    assert gone.stdout == f"Deletion of requested consumer groups ('{group}') was successful.\n"
    assert group not in headrace("consumer-groups", "--list").stdout.splitlines()


def test_a_group_that_is_not_there(headrace: Headrace, group: str) -> None:
    missing = headrace("consumer-groups", "--describe", "--group", group + "x")
    assert "\nError: Executing consumer group command failed due to " in missing.stdout
    assert f"did you mean '{group}'?" in missing.stderr


def test_mistakes_are_told(headrace: Headrace) -> None:
    for arguments, told in (
        (["--describe"], "Option [describe] takes one of these options: [group], [all-groups]"),
        (["--list", "--group", "g"], 'Option "[group]" can\'t be used with option "[list]"'),
        (
            ["--describe", "--group", "g", "--members", "--state"],
            "Option [describe] takes at most one of these options: [members], [offsets], [state]",
        ),
        (
            ["--reset-offsets", "--group", "g", "--topic", "t"],
            "requires one of the following scenarios",
        ),
        (["--list", "--state", "bogus"], "Invalid state list 'bogus'. Valid states are: "),
    ):
        output = headrace("consumer-groups", *arguments, succeed=False)
        assert output.exit_code == 1
        assert told in output.stderr
