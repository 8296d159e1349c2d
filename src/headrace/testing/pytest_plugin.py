"""The pytest plugin: a `headrace_broker` fixture, found by pytest wherever Headrace is installed.

One broker serves the whole test session; each test finds it empty.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing.embedded_broker import EmbeddedBroker


@pytest.fixture(scope="session")
def headrace_session_broker() -> "Iterator[EmbeddedBroker]":
    """The session's broker; tests want `headrace_broker`."""
    # Here and not above: pytest loads plugins even for runs that need no broker.
    from headrace.testing.embedded_broker import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def headrace_broker(headrace_session_broker: "EmbeddedBroker") -> "Iterator[EmbeddedBroker]":
    """A real broker, empty, for one test."""
    yield headrace_session_broker
    headrace_session_broker.reset()
