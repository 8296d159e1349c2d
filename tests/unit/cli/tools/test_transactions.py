"""Options that do not fit together, and the table."""

import pytest

from headrace.cli.tools.transactions import run, table


def test_the_table_is_kafkas() -> None:
    rows = [("a-long-name", 1), ("b", 22)]
    assert table(("Name", "Number"), rows) == [
        "Name       \tNumber\t",
        "a-long-name\t1     \t",
        "b          \t22    \t",
    ]
    assert table(("Name", "Number"), []) == ["Name\tNumber\t"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("describe", "transactional-id"),
        ("describe-producers --topic t", "partition"),
        ("abort --topic t --partition 0", "must be identified either with --start-offset"),
        ("abort --topic t --partition 0 --producer-id 1", "producer-epoch"),
        ("abort --topic t --partition 0 --producer-id 1 --producer-epoch 0", "coordinator-epoch"),
        ("find-hanging", "requires either --topic or --broker-id"),
        ("find-hanging --broker-id 1 --partition 0", "requires --topic"),
        ("list --transactional-id-pattern (", "not a regular expression"),
        ("no-such-command", "invalid choice"),
    ],
)
def test_mistakes(arguments: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*arguments.split(), "--bootstrap-server", "127.0.0.1:1"]) == 1
    printed = capsys.readouterr()
    assert told in printed.err
    assert printed.out == ""


def test_the_cluster_is_required(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["list"]) == 1
    assert "bootstrap-server" in capsys.readouterr().err
