"""One broker and one registry for all tests of this directory: use subjects of your own."""

from collections.abc import Iterator

import pytest

from tests.support.headrace_process import HeadraceProcess
from tests.support.registry_process import RegistryProcess


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HeadraceProcess]:
    with HeadraceProcess(tmp_path_factory.mktemp("registry-broker")) as broker:
        yield broker


@pytest.fixture(scope="session")
def registry(
    broker: HeadraceProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    brokers = f"127.0.0.1:{broker.port}"
    with RegistryProcess(tmp_path_factory.mktemp("registry"), brokers) as registry:
        registry.await_primary()
        yield registry
