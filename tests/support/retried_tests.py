"""Pytest plugin that retries the tests of one list, and reports every retry at the end of a run.

Owns the list, `tests/retried_tests.toml`: which tests may be on it, and that no test is retried without being on it. The retry
itself is that of pytest-rerunfailures.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

LIST: Final = Path(__file__).parents[1] / "retried_tests.toml"
# What these folders test is Headrace alone, or Headrace under faults that the test makes: nothing outside of it may fail them.
NEVER_RETRIED: Final = frozenset(
    ("unit", "property", "golden", "simulation", "cluster", "robustness", "pipelines")
)


class WrongList(Exception):
    """The list names a test that may not be retried."""


def read_list(text: str) -> dict[str, str]:
    """Reason for the retry by the node id of the test, without parameters."""
    reasons = tomllib.loads(text)
    for test, reason in reasons.items():
        folders = Path(test.partition("::")[0]).parts
        if folders[:1] != ("tests",) or folders[1] in NEVER_RETRIED or "[" in test:
            raise WrongList(
                f"{test} may not be retried: name a test outside of {', '.join(sorted(NEVER_RETRIED))}, "
                "without parameters"
            )
        if not isinstance(reason, str) or not reason.strip():
            raise WrongList(f"{test} has no reason")
    return reasons


class RetriedTests:
    """Marks the tests of the list for pytest-rerunfailures, which does the rest."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self._reasons = reasons

    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            if item.get_closest_marker("flaky") is not None:
                raise pytest.UsageError(
                    f"{item.nodeid} is marked flaky: put it on the list {LIST.name} instead"
                )
            if _without_parameters(item.nodeid) in self._reasons:
                item.add_marker(pytest.mark.flaky(reruns=1))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        retried = terminalreporter.stats.get("rerun", [])
        if not retried:
            return
        terminalreporter.section("retried tests")
        for report in retried:
            reason = self._reasons.get(_without_parameters(report.nodeid), "asked for by an option")
            terminalreporter.line(f"{report.nodeid} ({report.when}), on the list because: {reason}")
            terminalreporter.line(_failure(report))


def _without_parameters(node_id: str) -> str:
    return node_id.partition("[")[0]


def _failure(report: pytest.TestReport) -> str:
    """The failed attempt: the whole of it, because a passed second attempt leaves no other trace."""
    return "\n".join(f"    {line}" for line in report.longreprtext.splitlines())
