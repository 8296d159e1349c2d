"""One Spark and one broker for all tests of this directory: starting them takes longer than most tests.

The machine's Java is hidden from them: what a pipeline needs comes with Python's packages.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

pytest.importorskip("pyspark")

from confluent_kafka.schema_registry import SchemaRegistryClient
from pyspark.sql import SparkSession

from headrace.pipelines.spark_session import start_session
from headrace.testing.embedded_broker import EmbeddedBroker
from tests.pipelines.environments import java_hidden, path_without_java
from tests.pipelines.pipeline_process import QUICK_JAVA
from tests.support.registry_process import RegistryProcess
from tests.support.spark_topics import Topics


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark is slow on a busy machine; a test that waits for it must not be taken for one that hangs."""
    for item in items:
        if "tests/pipelines" in str(item.path) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return path_without_java(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module", autouse=True)
def no_java(path: str) -> Iterator[None]:
    """Tests that need the machine's Java have a fixture of this name that hides nothing."""
    with java_hidden(path):
        yield


@pytest.fixture(scope="session")
def spark(path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    directory = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": f"{QUICK_JAVA} -Dderby.stream.error.file={directory}/derby.log",
        "spark.sql.shuffle.partitions": "1",  # a store of state per operator and partition takes its time
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
    }
    with java_hidden(path):
        session = start_session(
            "tests", master="local[2]", settings=settings, log_file=directory / "spark.log"
        )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        yield running


@pytest.fixture(scope="session")
def registry(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    """A schema registry; use subjects of topics of your own."""
    directory = tmp_path_factory.mktemp("registry")
    with RegistryProcess(directory, broker.bootstrap_servers) as running:
        running.await_primary()
        yield running


@pytest.fixture
def client(registry: RegistryProcess) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": registry.url}) as client:
        yield client


@pytest.fixture
def topics(broker: EmbeddedBroker) -> Iterator[Topics]:
    """Topics with names of their own for one test."""
    with Topics(broker, suffix=uuid4().hex[:6]) as made:
        yield made


@pytest.fixture
def own_topics() -> Iterator[Topics]:
    """A broker for one test: its topics have the names that the test, or the example, gives them."""
    with EmbeddedBroker() as broker, Topics(broker, suffix="") as topics:
        yield topics


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")
