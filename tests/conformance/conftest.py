"""The broker under test (chosen by --broker), the clients, and topics to use them on."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conformance.clients.all import CLIENTS
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker import Broker, bootstrap
from tests.support.headrace_process import HeadraceProcess

MakeTopic = Callable[..., str]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    names = metafunc.config.getoption("--broker") or ["headrace"]
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
) -> Iterator[Broker]:
    """The broker under test: one for the whole run, so topics and groups must be a test's own."""
    if request.param == ApacheKafka.name:
        yield request.getfixturevalue("apache_kafka")
    else:
        with HeadraceProcess(tmp_path_factory.mktemp("headrace")) as process:
            yield process


@pytest.fixture
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Broker]:
    """A broker for one test alone, which may stop and kill it."""
    kind = ApacheKafka if request.param == ApacheKafka.name else HeadraceProcess
    with kind(tmp_path / request.param) as process:
        yield process


@pytest.fixture(scope="session")
def address(broker: Broker) -> str:
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
def make_topic(admin: AdminClient, unique: Callable[[str], str]) -> MakeTopic:
    """Create a topic with a new name: make_topic("orders", partitions=3, config={"retention.ms": "1000"})."""

    def make(stem: str, *, partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = unique(stem)
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=config or {})
        admin.create_topics([topic])[name].result(30)
        return name

    return make
