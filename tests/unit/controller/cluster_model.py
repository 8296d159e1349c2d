"""A cluster without a cluster: the controller's machine over a dictionary of nodes.

Writes are made as a store would make them, versions compared and parents required, so a decision
that no store would take fails here at once. `crash_after` makes only the first groups of a decision
and then lets another controller start from what the nodes say.
"""

from collections.abc import Mapping
from typing import TypeVar
from uuid import UUID

from headrace.controller.brokers import Registration, UpdateBrokers
from headrace.controller.changes import ChangeBatch, ChangeLog, ControllerElected, decode, encode
from headrace.controller.cluster_state import ClusterState, follow
from headrace.controller.core import ControllerSettings, Core, Event, Group
from headrace.controller.loading import Trees, picture_of
from headrace.controller.machine import ControllerMachine
from headrace.controller.values import Broker, ConfigKind, Endpoint, PartitionState
from headrace.coordination.nodes import ROOTS, ProducerIdBlockNode
from headrace.coordination.store import (
    Check,
    Create,
    Delete,
    Node,
    Operation,
    Set,
    parent_of,
    weight,
)

A = TypeVar("A")


class PlainRules:
    """Configs as the tests need them: lists end in `.list`, the value `bad` is bad."""

    def check(self, kind: ConfigKind, name: str, values: Mapping[str, str]) -> str | None:
        for key, value in values.items():
            if value == "bad":
                return f"Invalid value bad for configuration {key}"
        return None

    def is_list(self, kind: ConfigKind, key: str) -> bool:
        return key.endswith(".list")

    def default(self, kind: ConfigKind, key: str) -> str | None:
        return "delete" if key == "policy.list" else None


class ClusterModel:
    """Nodes, registered brokers, and the controller of the moment."""

    def __init__(self, *brokers: int, racks: Mapping[int, str] | None = None) -> None:
        self.nodes: dict[str, Node] = {path: Node(b"", 0, 0) for path in ROOTS}
        self.registrations: dict[int, Registration] = {}
        self.last_epochs: dict[int, int] = {}
        self._racks = racks or {}
        self._txn = 0
        self._topic_ids = 0
        self.controller_epoch = 0
        self.max_group_bytes: int | None = None  # that the store takes in one write
        self.settings = ControllerSettings()  # of the broker that the next controller runs on
        self.replica = ClusterState()
        self._log = ChangeLog(-1)
        for broker_id in brokers:
            self._register(broker_id, clean=True)
        self.take_over()

    # What happens to the cluster.

    def take_over(self, *, faults: int = 0) -> None:
        """Another controller starts from the nodes, of which so many make no sense."""
        self.controller_epoch += 1
        picture = picture_of(self._trees(), ControllerElected(0, self.controller_epoch))
        assert len(picture.faults) == faults, picture.faults
        self._write(picture.leftovers)
        picture.nodes.written(picture.leftovers)
        self.machine = ControllerMachine(
            Core(
                state=picture.state,
                nodes=picture.nodes,
                settings=self.settings,
                config_rules=PlainRules(),
                new_topic_id=self._new_topic_id,
                random_below=lambda _: 0,
                seen_epochs=picture.seen_epochs,
                seen_directories=picture.seen_directories,
                max_group_bytes=self.max_group_bytes,
            )
        )
        seen = UpdateBrokers(registrations=dict(self.registrations))
        decision = self.machine.decide(seen)
        self._write(decision.groups)
        self.machine.written(seen, decision)
        self._log = ChangeLog(self.controller_epoch)
        snapshot = ChangeBatch(self.controller_epoch, 0, tuple(self.state.snapshot()), True)
        self.replica = follow(self.replica, decode(encode(snapshot)))

    def do(self, event: Event[A]) -> A:
        """One event, with all that follows; the replica hears of it through bytes."""
        decision = self.machine.decide(event)
        self._write(decision.groups)
        self.machine.written(event, decision)
        batch = self._log.append(decision.changes)
        self.replica = follow(self.replica, decode(encode(batch)))
        return decision.answer

    def crash_after(self, event: Event[A], groups: int) -> None:
        """The controller dies in the middle of its writes, and another takes over."""
        self._write(self.machine.decide(event).groups[:groups])
        self.take_over()

    def register(
        self,
        broker_id: int,
        *,
        clean: bool = True,
        directories: tuple[str, ...] | None = None,
        offline_directories: int = 0,
    ) -> None:
        """A broker comes, or comes back before anyone missed it; perhaps with other log directories than at first."""
        self._register(
            broker_id,
            clean=clean,
            directories=directories,
            offline_directories=offline_directories,
        )
        self.see()

    def lose(self, *broker_ids: int) -> None:
        """Brokers go."""
        for broker_id in broker_ids:
            self.registrations.pop(broker_id, None)
        self.see()

    def see(self) -> None:
        """The controller looks at who is registered."""
        self.do(UpdateBrokers(registrations=dict(self.registrations)))

    # What can be looked at.

    @property
    def state(self) -> ClusterState:
        return self.machine.core.state

    def partition(self, topic: str, index: int = 0) -> PartitionState:
        found = self.state.partition(topic, index)
        assert found is not None
        return found

    def topic_id(self, topic: str) -> UUID:
        return self.state.topics[topic].topic_id

    def epoch(self, broker_id: int) -> int:
        return self.registrations[broker_id].broker.epoch

    def check(self) -> None:
        """The machine is sound, and both a replica and a new controller see the same."""
        self.machine.check()
        assert self.replica.snapshot() == self.state.snapshot()
        picture = picture_of(self._trees(), ControllerElected(0, self.controller_epoch))
        loaded = picture.state
        for broker in self.state.brokers.values():
            loaded.brokers[broker.broker_id] = broker
        assert _sorted(loaded) == _sorted(self.state)
        assert picture.seen_epochs == self.machine.core.seen_epochs
        assert picture.seen_directories == self.machine.core.seen_directories
        assert picture.nodes.known == self.machine.core.nodes.known
        assert not picture.leftovers

    # How nodes are written.

    def _register(
        self,
        broker_id: int,
        *,
        clean: bool,
        directories: tuple[str, ...] | None = None,
        offline_directories: int = 0,
    ) -> None:
        self._txn += 1
        self.registrations[broker_id] = Registration(
            broker=Broker(
                broker_id,
                self._txn,
                (Endpoint("PLAINTEXT", f"host-{broker_id}", 9092),),
                self._racks.get(broker_id),
            ),
            previous_epoch=self.last_epochs.get(broker_id, -1) if clean else -1,
            directories=(f"disk-{broker_id}",) if directories is None else directories,
            offline_directories=offline_directories,
        )
        self.last_epochs[broker_id] = self._txn

    def _write(self, groups: tuple[Group, ...] | list[Group]) -> None:
        for group in groups:
            if self.max_group_bytes is not None:
                assert sum(map(weight, group)) <= self.max_group_bytes, "the store takes less"
            self._txn += 1
            for operation in group:
                self._apply(operation)

    def _apply(self, operation: Operation) -> None:
        path = operation.path
        match operation:
            case Create(_, data, ephemeral):
                assert not ephemeral
                assert path not in self.nodes, f"{path} exists"
                assert parent_of(path) in self.nodes or parent_of(path) == "/", f"orphan {path}"
                self.nodes[path] = Node(data, 0, self._txn)
                return
            case Check():
                raise AssertionError("fences are the driver's work")
        node = self.nodes[path]
        assert operation.version in (-1, node.version), f"{path}: {operation.version}"
        match operation:
            case Set(_, data):
                self.nodes[path] = Node(data, node.version + 1, node.created_txn)
            case Delete():
                assert not any(other.startswith(path + "/") for other in self.nodes), path
                del self.nodes[path]

    def _trees(self) -> Trees:
        def below(root: str) -> dict[str, Node]:
            return {p: n for p, n in self.nodes.items() if p.startswith(root + "/") and n.data}

        return Trees(
            topics=below("/brokers/topics"),
            configs=below("/config"),
            epochs=below("/brokers/epochs"),
            deleted_topics=below("/admin/deleted_topics"),
            producer_ids=self.nodes.get(ProducerIdBlockNode.PATH),
        )

    def _new_topic_id(self) -> UUID:
        self._topic_ids += 1
        return UUID(int=self._topic_ids)


def _sorted(state: ClusterState) -> list[str]:
    return sorted(map(repr, state.snapshot()))
