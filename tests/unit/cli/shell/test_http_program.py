"""Flags of HTTP programs, and what is told when their start fails."""

from typing import NamedTuple

import pytest

from headrace.cli.shell.command_line import Failure
from headrace.cli.shell.http_program import HttpProgram, http_parser, run_service, start_failure
from headrace.client.exchange import Disconnected
from headrace.errors import HeadraceError, SettingError

PROGRAM = HttpProgram(
    command="gauge-start",
    title="river gauge",
    description="Run a river gauge.",
    settings_page="docs/river-gauge.md",
    bootstrap_setting="gauge.bootstrap.servers",
)


class Settings(NamedTuple):
    host: str = "127.0.0.1"
    port: int = 8099
    bootstrap_servers: str = "localhost:9092"
    unknown: tuple[str, ...] = ()


def test_the_flags_are_the_same_for_all_programs() -> None:
    options = http_parser(PROGRAM).parse_args(
        ["a.properties", "--override", "a=1", "--override", "b=2", "--json-logs"]
    )
    assert (options.file, options.override, options.json_logs) == (
        "a.properties",
        ["a=1", "b=2"],
        True,
    )
    options = http_parser(PROGRAM).parse_args([])
    assert (options.file, options.override, options.json_logs) == (None, [], False)
    assert http_parser(PROGRAM).format_usage().startswith("usage: headrace gauge-start ")


def test_a_refused_setting_names_the_page_that_lists_them() -> None:
    async def serve(_settings: Settings) -> None:
        raise AssertionError("nothing is served with refused settings")

    def settings_from(properties: object) -> Settings:
        assert properties == {"depth": "deep"}
        raise SettingError("depth=deep: expected a number")

    options = http_parser(PROGRAM).parse_args(["--override", "depth=deep"])
    with pytest.raises(Failure, match="depth=deep: expected a number") as failure:
        run_service(PROGRAM, options, settings_from, serve)
    assert failure.value.hint == "docs/river-gauge.md lists the settings"


@pytest.mark.parametrize(
    ("error", "what", "hint"),
    [
        (
            Disconnected("refused"),
            "cannot reach a broker at localhost:9092",
            "start one ('headrace dev'), or correct gauge.bootstrap.servers",
        ),
        (HeadraceError("the float is stuck"), "the river gauge cannot start", ""),
        (
            OSError(98, "Address already in use"),
            "cannot listen on 127.0.0.1:8099",
            "stop the other program, or choose another port with --override listeners=http://host:port",
        ),
    ],
)
def test_a_failed_start_says_what_to_do(
    error: HeadraceError | OSError, what: str, hint: str
) -> None:
    failure = start_failure(PROGRAM, error, Settings())
    assert (failure.what, failure.hint) == (what, hint)
    assert failure.why in str(error)
    assert failure.why
