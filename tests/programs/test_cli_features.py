"""`headrace features`: what is printed, as kafka-features prints it, and what a cluster makes of the changes."""

import json

import pytest

from headrace.cli.main import main
from headrace.testing.embedded_broker import EmbeddedBroker

LEVEL = "Feature: transaction.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 2\t"
REFUSED = "The update failed for all features since the following feature had an error: "


def test_levels_are_described_and_changed(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker() as broker:

        def run(*words: str) -> tuple[int, str, str]:
            code = main(
                ["features", words[0], "--bootstrap-server", broker.bootstrap_servers, *words[1:]]
            )
            told = capsys.readouterr()
            return code, told.out, told.err

        code, told, _ = run("describe")
        assert code == 0
        lines = told.splitlines()
        assert f"{LEVEL}FinalizedVersionLevel: 2\tEpoch: 1" in lines
        assert lines == sorted(lines)
        assert run("downgrade", "--feature", "transaction.version=1", "--dry-run")[:2] == (
            0,
            "transaction.version can be downgraded to 1.\n",
        )
        assert run("disable", "--feature", "transaction.version")[:2] == (
            0,
            "transaction.version was disabled.\n",
        )
        assert f"{LEVEL}FinalizedVersionLevel: 0\tEpoch: 2" in run("describe")[1]
        code, told, errors = run("upgrade", "--feature", "transaction.version=3")
        assert (code, told) == (
            1,
            f"Could not upgrade transaction.version to 3. {REFUSED}Invalid update version 3 for feature "
            "transaction.version. Local controller 1 only supports versions 0-2\n",
        )
        assert "1 out of 1 operation(s) failed." in errors
        assert run("upgrade", "--feature", "transaction.version=2")[:2] == (
            0,
            "transaction.version was upgraded to 2.\n",
        )
        found = json.loads(run("describe", "--output", "json")[1])
        assert found[-1]["finalizedVersionLevel"] == 2
        assert found[-1]["epoch"] == 3


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        ((), "You must specify at least one feature to upgrade"),
        (("--feature", "x"), "Can't parse feature=level string x: equals sign not found."),
        (("--feature", "x=y"), "unable to parse y as a short."),
        (("--feature", "x=99999"), "unable to parse 99999 as a short."),
        (("--feature", "x=1", "--feature", "x=2"), "Feature x was specified more than once."),
    ],
)
def test_mistakes_are_told(
    words: tuple[str, ...], mistake: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["features", "upgrade", "--bootstrap-server", "localhost:1", *words]) == 1
    assert mistake in capsys.readouterr().err
