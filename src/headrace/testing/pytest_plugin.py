"""The pytest plugin: `headrace_broker` and `headrace_cluster` fixtures, found by pytest wherever Headrace is installed.

One broker and one cluster of three serve the whole test session, each started when first asked for; each test finds them
empty, and all brokers of the cluster running.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from headrace.testing.embedded_broker import EmbeddedBroker
    from headrace.testing.embedded_cluster import EmbeddedCluster


@pytest.fixture(scope="session")
def headrace_session_broker() -> "Iterator[EmbeddedBroker]":
    """The session's broker; tests want `headrace_broker`."""
    # Here and not above: pytest loads plugins even for runs that need no broker.
    from headrace.testing.embedded_broker import EmbeddedBroker

    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def headrace_broker(headrace_session_broker: "EmbeddedBroker") -> "EmbeddedBroker":
    """A real broker, empty, for one test, which may stop or kill it."""
    headrace_session_broker.reset()
    return headrace_session_broker


@pytest.fixture(scope="session")
def headrace_session_cluster() -> "Iterator[EmbeddedCluster]":
    """The session's cluster; tests want `headrace_cluster`."""
    from headrace.testing.embedded_cluster import EmbeddedCluster

    with EmbeddedCluster() as cluster:
        yield cluster


@pytest.fixture
def headrace_cluster(headrace_session_cluster: "EmbeddedCluster") -> "EmbeddedCluster":
    """Three real brokers, empty, for one test, which may kill and restart them."""
    headrace_session_cluster.reset()
    return headrace_session_cluster
