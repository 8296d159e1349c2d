"""Several real brokers inside the test process, with one coordination store between them and no ZooKeeper.

    with EmbeddedCluster() as cluster:
        cluster.create_topic("orders", partitions=3)
        cluster.kill(cluster.leader("orders", 0))

Each broker is an `EmbeddedBroker`: its own thread, event loop, port and data. Broker ids start at 1.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Self, TypeVar

from headrace.controller.cluster_state import ClusterState
from headrace.controller.values import NO_LEADER, PartitionState
from headrace.coordination.store import Store
from headrace.errors import HeadraceError
from headrace.testing.embedded_broker import EmbeddedBroker
from headrace.testing.shared_store import SharedStore, SharedTree

T = TypeVar("T")

_CLUSTER_SETTINGS: Final = {
    "default.replication.factor": "3",
    "replica.fetch.backoff.ms": "50",  # a follower soon notices that its leader is back
}
_PATIENCE_S: Final = 30.0
_LOOK_AGAIN_S: Final = 0.02


class EmbeddedCluster:
    """A few brokers for tests, three if nothing else is said."""

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        size: int = 3,
        racks: Sequence[str] = (),
    ) -> None:
        """`settings` are those of every broker; `racks` are the brokers' in order."""
        self._tree = SharedTree()
        self._stores: dict[int, SharedStore] = {}
        self.brokers: dict[int, EmbeddedBroker] = {}
        for broker_id in range(1, size + 1):
            own = {"node.id": str(broker_id)}
            if racks:
                own["broker.rack"] = racks[broker_id - 1]
            self.brokers[broker_id] = EmbeddedBroker(
                _CLUSTER_SETTINGS | dict(settings or {}) | own,
                make_store=partial(self._make_store, broker_id),
            )

    def _make_store(self, broker_id: int) -> Store:
        store = self._stores[broker_id] = SharedStore(self._tree)
        return store

    @property
    def bootstrap_servers(self) -> str:
        """What a client's setting of that name wants: all brokers, be they running or not."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    # ---- starting and stopping

    def __enter__(self) -> Self:
        try:
            for broker_id in self.brokers:
                self.start(broker_id)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # Killed: nobody needs the leaders that a controlled shutdown would look for.
        for broker in self.brokers.values():
            broker.kill()
            broker.remove_data()

    def start(self, broker_id: int) -> None:
        """Start a broker, or start it again on the same data and port; the others know it when this returns."""
        self.brokers[broker_id].start()
        self.wait_until(lambda state: broker_id in state.brokers)

    def stop(self, broker_id: int) -> None:
        """Stop a broker as after SIGTERM: it hands over what it leads. The others miss it when this returns."""
        self.brokers[broker_id].stop()
        self.wait_until(lambda state: broker_id not in state.brokers)

    def kill(self, broker_id: int) -> None:
        """End a broker as after SIGKILL. The others miss it when this returns."""
        self.brokers[broker_id].kill()
        self.wait_until(lambda state: broker_id not in state.brokers)

    def expire_session(self, broker_id: int) -> None:
        """Let a broker lose its session, as if it had been away for too long; it soon has another."""
        self._stores[broker_id].expire()

    # ---- what the cluster looks like

    @property
    def running(self) -> dict[int, EmbeddedBroker]:
        """The brokers that run, by id."""
        return {id_: broker for id_, broker in self.brokers.items() if broker.is_running}

    def partition(self, topic: str, index: int = 0) -> PartitionState:
        """A partition as one of the running brokers knows it."""
        found = self._any().look(lambda state: state.partition(topic, index))
        if found is None:
            raise HeadraceError(f"{topic}-{index} does not exist")
        return found

    def leader(self, topic: str, index: int = 0) -> int:
        """The broker that leads a partition, once there is one."""
        self.wait_until(
            lambda state: (
                (found := state.partition(topic, index)) is not None and found.leader != NO_LEADER
            )
        )
        return self.partition(topic, index).leader

    def controller(self) -> int:
        """The broker that holds the controllership."""
        self.wait_until(lambda state: state.controller_id in self.running)
        return self._any().look(lambda state: state.controller_id)

    def create_topic(
        self, name: str, partitions: int = 1, replication_factor: int = -1, **config: str
    ) -> None:
        """Create a topic, and wait until every broker knows it."""
        self._any().create_topic(name, partitions, replication_factor, **config)
        self.wait_until(lambda state: name in state.topics)

    def wait_until(
        self, is_so: Callable[[ClusterState], bool], timeout_s: float = _PATIENCE_S
    ) -> None:
        """Wait until every running broker believes something of the cluster."""
        deadline = time.monotonic() + timeout_s
        for broker_id, broker in self.running.items():
            while not broker.look(is_so):
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"broker {broker_id} does not see it: {broker.look(_summary)}"
                    )
                time.sleep(_LOOK_AGAIN_S)

    def wait_until_in_sync(self, timeout_s: float = _PATIENCE_S) -> None:
        """Wait until all replicas of all partitions are in sync."""
        self.wait_until(
            lambda state: all(
                partition.leader != NO_LEADER and set(partition.isr) == set(partition.replicas)
                for topic in state.topics.values()
                for partition in topic.partitions
            ),
            timeout_s,
        )

    def reset(self) -> None:
        """Start all brokers that do not run, delete all topics, and take back all settings that were altered."""
        for broker_id, broker in self.brokers.items():
            if not broker.is_running:
                self.start(broker_id)
        self._any().reset()
        self.wait_until(
            lambda state: not (state.topics or state.deleted_topics or any(state.configs.values()))
        )

    def _any(self) -> EmbeddedBroker:
        for broker in self.running.values():
            return broker
        raise HeadraceError("no broker is running")


def _summary(state: ClusterState) -> str:
    partitions = {
        f"{topic.name}-{index}": partition
        for topic in state.topics.values()
        for index, partition in enumerate(topic.partitions)
    }
    return f"brokers {sorted(state.brokers)}, controller {state.controller_id}, {partitions}"
