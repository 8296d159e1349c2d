"""Whose configs are meant, and what is to be changed."""

import argparse
from pathlib import Path

import pytest

from headrace.cli.configs.config_entities import (
    Entities,
    check_action,
    configs_to_add,
    configs_to_delete,
    entities_of,
)
from headrace.cli.shell.command_line import Failure
from headrace.cli.tools import configs


def parsed(*arguments: str) -> argparse.Namespace:
    return configs.make_parser().parse_args(["--bootstrap-server", "b:1", *arguments])


@pytest.mark.parametrize(
    ("arguments", "types", "names"),
    [
        (["--topic", "t"], ["topics"], ["t"]),
        (["--entity-type", "topics", "--entity-name", "t"], ["topics"], ["t"]),
        (["--entity-type", "topics"], ["topics"], []),
        (["--broker-defaults"], ["brokers"], [""]),
        (["--entity-type", "brokers", "--entity-default"], ["brokers"], [""]),
        (["--user", "u", "--client", "c"], ["clients", "users"], ["c", "u"]),
        (["--user", "u", "--client-defaults"], ["users", "clients"], ["u", ""]),
        (
            [
                *("--entity-type", "users", "--entity-default"),
                *("--entity-type", "clients", "--entity-name", "c"),
            ],
            ["users", "clients"],
            ["", "c"],
        ),
    ],
)
def test_entities(arguments: list[str], types: list[str], names: list[str]) -> None:
    assert entities_of(parsed(*arguments)) == Entities(types=types, names=names)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--entity-type", "things"], "Invalid entity type things"),
        ([], "At least one entity type must be specified"),
        (["--topic", "t", "--broker", "1"], "Only 'users' and 'clients' entity types"),
        (["--user", "u", "--user-defaults"], "Duplicate entity type"),
        (["--topic", "t", "--entity-name", "u"], "should not be used in conjunction"),
        (["--broker", "x"], "must be a valid integer broker id, but it is: x"),
    ],
)
def test_entities_that_make_no_sense(arguments: list[str], told: str) -> None:
    with pytest.raises(Failure, match=told):
        entities_of(parsed(*arguments))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["--alter", "--entity-type", "topics"],
            "An entity name must be specified with --alter of topics",
        ),
        (
            ["--alter", "--entity-type", "users"],
            "An entity-name or default entity must be specified",
        ),
        (["--alter", "--topic", "t"], "At least one of --add-config, --add-config-file"),
        (
            ["--alter", "--topic", "t", "--add-config", "a=1", "--add-config-file", "f"],
            "Only one of --add-config or --add-config-file",
        ),
        (
            ["--describe", "--entity-type", "broker-loggers"],
            "An entity name must be specified with --describe",
        ),
        (
            ["--describe", "--entity-type", "topics", "--entity-default"],
            "--entity-default must not be",
        ),
    ],
)
def test_actions_that_do_not_fit(arguments: list[str], told: str) -> None:
    options = parsed(*arguments)
    with pytest.raises(Failure, match=told):
        check_action(options, entities_of(options))


def test_configs_to_add_and_delete() -> None:
    text = "retention.ms = 1000,cleanup.policy=[compact,delete],empty=,k=[a=b,c=d]"
    assert configs_to_add(parsed("--topic", "t", "--add-config", text)) == {
        "retention.ms": "1000",
        "cleanup.policy": "compact,delete",
        "empty": "",
        "k": "a=b,c=d",
    }
    assert configs_to_delete(parsed("--topic", "t", "--delete-config", "a, b")) == ["a", "b"]


def test_configs_to_add_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "some.properties"
    file.write_text("# comment\nretention.ms=7\n")
    assert configs_to_add(parsed("--add-config-file", str(file))) == {"retention.ms": "7"}
    with pytest.raises(Failure, match="cannot read"):
        configs_to_add(parsed("--add-config-file", str(tmp_path / "none")))


@pytest.mark.parametrize("text", ["retention.ms", "a=b=c"])
def test_configs_in_another_form_are_told(text: str) -> None:
    with pytest.raises(Failure, match="all configs to be added must be in the format"):
        configs_to_add(parsed("--add-config", text))


def test_keys_with_other_characters_are_told() -> None:
    with pytest.raises(Failure, match="Invalid character found for config key: a b"):
        configs_to_add(parsed("--add-config", "a b=1"))
