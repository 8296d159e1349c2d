"""What every broker under test looks like, whoever wrote it, and the settings that make any of them fast to test with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

# Kafka's names; understood by every broker here. Internal topics are small because they are created while a test waits.
FAST_TEST_PROPERTIES: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
}


class BrokerUnderTest(Protocol):
    """One broker or a whole cluster of them that listens on 127.0.0.1 and keeps its data across restarts."""

    @property
    def name(self) -> str: ...
    @property
    def ports(self) -> Mapping[int, int]:
        """Where each broker listens, by its id."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def log_tail(self) -> str: ...


class Broker(BrokerUnderTest, Protocol):
    """One broker process."""

    @property
    def port(self) -> int: ...
    @property
    def data_dir(self) -> Path: ...
    @property
    def pid(self) -> int: ...


def bootstrap(broker: BrokerUnderTest) -> str:
    """The addresses that clients are given."""
    return ",".join(f"127.0.0.1:{port}" for port in broker.ports.values())


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a Java properties file."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
