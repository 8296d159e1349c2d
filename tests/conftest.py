"""Fixtures that run real programs beside the tests: one Apache Kafka for the whole run, started when first asked for."""

import os
import signal
import uuid
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from tests.support import leftovers, retried_tests, tools
from tests.support.apache_kafka import ApacheKafka

# How long an example takes depends on what else the machine does.
settings.register_profile("headrace", deadline=None)
settings.load_profile("headrace")

BROKERS = ("headrace", "headrace-cluster", "apache-kafka")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        action="append",
        choices=BROKERS,
        help="what tests/conformance runs against; may be repeated (default: headrace, and some of it headrace-cluster)",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let all tests that miss the same tool be one line of the summary, wherever they noticed.

    And escape what is no text in captured output: reports travel between processes as UTF-8.
    """
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if tools.is_missing_tool(reason):
            report.longrepr = (tools.__file__, 0, reason)
    return report


def pytest_configure(config: pytest.Config) -> None:
    """Mark every process of this run; the processes of pytest-xdist find the mark there already.

    And let Ctrl-C interrupt them: a shell starts what runs in its background with SIGINT ignored, and children inherit that.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.setdefault(leftovers.MARK, uuid.uuid4().hex)
    reasons = retried_tests.read_list(retried_tests.LIST.read_text(encoding="utf-8"))
    config.pluginmanager.register(retried_tests.RetriedTests(reasons))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that leaves processes on the machine is a failed run."""
    if hasattr(session.config, "workerinput"):
        return  # one of pytest-xdist: whoever started it looks when all have ended
    found = leftovers.wait_for_end(os.environ[leftovers.MARK])
    if found:
        writer = session.config.get_terminal_writer()
        writer.line("\n  ".join(["\nprocesses that this run has left behind:", *found]))
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A real Kafka, shared by all tests of the run: use topics and groups of your own."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka")) as kafka:
        yield kafka
