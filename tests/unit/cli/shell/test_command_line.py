"""How tools read options and tell what went wrong."""

import pytest

from headrace.cli.shell.command_line import (
    FAILED,
    OK,
    Failure,
    ToolParser,
    UsageError,
    explained,
    forbid_together,
    nearest,
    renamed,
    require_option,
    run_tool,
)
from headrace.client.brokers import Address, Unreachable
from headrace.errors import HeadraceError


@pytest.fixture
def parser() -> ToolParser:
    parser = ToolParser("weigh", "Weigh things.")
    parser.value("topic", "what to weigh")
    parser.value("new-name", "today's name")
    parser.value("old-name", "yesterday's name")
    parser.flag("all", "everything")
    return parser


def test_a_tool_that_succeeds_says_nothing(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tool(parser, ["--topic=x"], lambda options: OK) == 0
    assert capsys.readouterr() == ("", "")


def test_without_options_the_usage_is_told(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tool(parser, [], lambda options: OK) == FAILED
    assert "'headrace weigh --help' lists them" in capsys.readouterr().err


def test_help_and_version_succeed(parser: ToolParser, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool(parser, ["--help"], lambda options: FAILED) == OK
    assert "--topic TOPIC" in capsys.readouterr().out
    assert run_tool(parser, ["--version"], lambda options: FAILED) == OK
    assert capsys.readouterr().out.startswith("4.3.0 (headrace ")


def test_an_unknown_option_gets_the_nearest_one(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tool(parser, ["--tpoic", "x"], lambda options: OK) == FAILED
    said = capsys.readouterr().err
    assert "tpoic is not a recognized option; did you mean '--topic'?" in said


def test_unambiguous_prefixes_are_understood(parser: ToolParser) -> None:
    assert parser.parse_args(["--top", "x", "--al"]).topic == "x"


def test_a_failure_is_told_in_three_lines(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    def work(options: object) -> int:
        raise Failure("no scales", why="they were stolen", hint="buy some")

    assert run_tool(parser, ["--all"], work) == FAILED
    told = "headrace weigh: no scales\n  why: they were stolen\n  try: buy some\n"
    assert capsys.readouterr() == ("", told)


def test_an_unreachable_broker_is_explained() -> None:
    failure = explained(Unreachable([Address("somewhere", 9092)], "Connection refused"))
    assert failure.what == "cannot reach a broker at somewhere:9092"
    assert failure.why == "Connection refused"
    assert "--bootstrap-server" in failure.hint


def test_what_nobody_foresaw_is_still_one_line() -> None:
    assert explained(HeadraceError("something else")).what == "something else"


def test_missing_and_clashing_options_are_told_in_kafkas_words(parser: ToolParser) -> None:
    options = parser.parse_args(["--topic", "x", "--all"])
    require_option(options, "topic")
    with pytest.raises(UsageError, match=r'^Missing required argument "\[new-name\]"$'):
        require_option(options, "topic", "new-name")
    with pytest.raises(
        UsageError, match=r"^Option \"\[topic\]\" can't be used with option \"\[all\]\"$"
    ):
        forbid_together(options, "topic", ["new-name", "all"])


def test_an_old_name_works_and_is_remarked_upon(
    parser: ToolParser, capsys: pytest.CaptureFixture[str]
) -> None:
    assert renamed(parser.parse_args(["--new-name", "n"]), "old-name", "new-name") == "n"
    assert capsys.readouterr().err == ""
    assert renamed(parser.parse_args(["--old-name", "o"]), "old-name", "new-name") == "o"
    assert "Option --old-name is deprecated" in capsys.readouterr().err
    with pytest.raises(UsageError):
        renamed(parser.parse_args(["--old-name", "o", "--new-name", "n"]), "old-name", "new-name")


def test_the_nearest_name() -> None:
    assert nearest("ordres", ["orders", "payments"]) == "did you mean 'orders'?"
    assert nearest("zzz", ["orders", "payments"]) == ""
