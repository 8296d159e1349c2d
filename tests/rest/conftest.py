"""One broker, one registry and one proxy for all tests of this directory: use topics and groups of your own."""

import uuid
from collections.abc import Iterator

import pytest

from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess
from tests.support.rest_process import RestProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    properties = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false"}
    with HeadraceProcess(tmp_path_factory.mktemp("rest-broker"), properties=properties) as broker:
        yield broker


@pytest.fixture(scope="session")
def brokers(broker: HeadraceProcess) -> str:
    return f"127.0.0.1:{broker.port}"


@pytest.fixture(scope="session")
def registry(brokers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with RegistryProcess(tmp_path_factory.mktemp("rest-registry"), brokers) as registry:
        registry.await_primary()
        yield registry


@pytest.fixture(scope="session")
def proxy(
    brokers: str, registry: RegistryProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestProcess]:
    directory = tmp_path_factory.mktemp("rest-proxy")
    with RestProcess(directory, brokers, registry=registry.url) as proxy:
        yield proxy


@pytest.fixture
def topic(proxy: RestProcess) -> str:
    """A topic of one partition that nobody else uses."""
    name = f"t-{uuid.uuid4()}"
    proxy.create_topic(name)
    return name


@pytest.fixture
def group() -> str:
    return f"g-{uuid.uuid4()}"
