"""The broker under test (chosen by --broker), the clients, and topics to use them on.

Every suite runs against a cluster of three as well; by default those of the clients do, and the others are asked for with
`--broker headrace-cluster`. Topics have as many replicas as there are brokers.
"""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conformance.clients.all import CLIENTS
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import BrokerUnderTest, bootstrap
from tests.support.headrace_cluster import HeadraceCluster
from tests.support.headrace_process import HeadraceProcess

MakeTopic = Callable[..., str]
KINDS: dict[str, type[HeadraceProcess | HeadraceCluster | ApacheKafka]] = {
    kind.name: kind for kind in (HeadraceProcess, HeadraceCluster, ApacheKafka)
}
CLIENT_SUITES = ("test_groups", "test_offsets", "test_records", "test_transactions")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = metafunc.config.getoption("--broker") or [HeadraceProcess.name]
    if not metafunc.config.getoption("--broker") and metafunc.module.__name__.endswith(
        CLIENT_SUITES
    ):
        names = [HeadraceProcess.name, HeadraceCluster.name]
    if "broker" in metafunc.fixturenames:
        metafunc.parametrize("broker", names, indirect=True, scope="session")
    if "own_broker" in metafunc.fixturenames:
        metafunc.parametrize("own_broker", names, indirect=True)
    for fixture in ("client", "writer", "reader"):
        if fixture in metafunc.fixturenames:
            metafunc.parametrize(fixture, CLIENTS, ids=lambda client: client.name)


@pytest.fixture(scope="session")
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerUnderTest]:
    """The broker under test: one for the whole run, so topics and groups must be a test's own."""
    if request.param == ApacheKafka.name:
        yield request.getfixturevalue("apache_kafka")
    else:
        with KINDS[request.param](tmp_path_factory.mktemp(request.param)) as process:
            yield process


@pytest.fixture
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerUnderTest]:
    """A broker for one test alone, which may stop and kill it."""
    with KINDS[request.param](tmp_path / request.param) as process:
        yield process


@pytest.fixture(scope="session")
def address(broker: BrokerUnderTest) -> str:
    """What a client calls bootstrap servers."""
    return bootstrap(broker)


@pytest.fixture(scope="session")
def admin(address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": address})


@pytest.fixture(scope="session")
def unique() -> Callable[[str], str]:
    """Names that no other test of the run has."""
    numbers = itertools.count()
    return lambda stem: f"{stem}-{next(numbers)}"


@pytest.fixture(scope="session")
def make_topic(
    broker: BrokerUnderTest, admin: AdminClient, unique: Callable[[str], str]
) -> MakeTopic:
    """Create a topic with a new name: make_topic("orders", partitions=3, config={"retention.ms": "1000"})."""

    def make(stem: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = unique(stem)
        topic = NewTopic(
            name,
            num_partitions=partitions,
            replication_factor=len(broker.ports),
            config=config or {},
        )
        admin.create_topics([topic])[name].result(30)
        if isinstance(broker, HeadraceCluster):
            # The controller answers when it has decided; the other brokers hear of it a moment later.
            broker.processes.wait_for_full_isr(name)
        return name

    return make
