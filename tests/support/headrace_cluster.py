"""Three brokers of Headrace and a ZooKeeper, in the shape of one broker: what a client may ask of the one, it may ask of these."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.cluster_process import ClusterProcess

# As on a broker alone, where nothing else is said.
_PROPERTIES = {"auto.create.topics.enable": "true"}


class HeadraceCluster:
    """Start on entry, end on exit; `stop`, `kill` and `start` again are for all brokers and keep the data."""

    name = "headrace-cluster"

    def __init__(self, directory: Path) -> None:
        self.processes = ClusterProcess(directory, properties=_PROPERTIES)

    @property
    def ports(self) -> Mapping[int, int]:
        return {number: broker.port for number, broker in self.processes.brokers.items()}

    def start(self) -> None:
        for broker in self.processes.brokers.values():
            broker.launch()
        for broker in self.processes.brokers.values():
            broker.wait_until_ready()
        self.processes.wait_for_all_brokers()

    def stop(self) -> None:
        self.processes.stop_brokers()

    def kill(self) -> None:
        for broker in self.processes.brokers.values():
            broker.kill()

    def log_tail(self) -> str:
        return self.processes.story()

    def __enter__(self) -> Self:
        self.processes.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.processes.__exit__(kind, error, trace)
