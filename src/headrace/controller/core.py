"""Input and output of every decision of the controller.

Owns the shapes: `Core` is what a decision may look at, `Decision` is what it yields, `Event` is
what asks for one. Rule of order: a decision changes nothing. Its writes are made, group after
group, each group whole; only when the last one is made do its changes become true and its answer
valid. If a write fails, the state is read again and the event decided again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, Protocol, TypeVar
from uuid import UUID

import msgspec

from headrace.controller.changes import Change, PartitionChanged
from headrace.controller.cluster_state import ClusterState
from headrace.controller.elections import with_epoch
from headrace.controller.values import ALL_BROKERS, ConfigKind, PartitionState
from headrace.coordination.nodes import PartitionStateNode, TopicNode
from headrace.coordination.store import Create, Delete, Operation, Set, weight

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)

Group = tuple[Operation, ...]

MIN_ISR = "min.insync.replicas"
FORMER_EPOCHS_KEPT = 8
MAX_LEADER_EPOCH = (1 << 31) - 1  # only damage brings a partition there


class Decision(msgspec.Struct, Generic[A_co], frozen=True, kw_only=True):
    """What to write, what is then true, and what to answer."""

    answer: A_co
    groups: tuple[Group, ...] = ()
    changes: tuple[Change, ...] = ()


class ConfigRules(Protocol):
    """What the broker knows about configs and the controller does not."""

    def check(self, kind: ConfigKind, name: str, values: Mapping[str, str]) -> str | None:
        """Why these values cannot be, or None. The text goes to the client."""
        ...

    def is_list(self, kind: ConfigKind, key: str) -> bool:
        """Whether values can be appended to and subtracted from this key."""
        ...

    def default(self, kind: ConfigKind, key: str) -> str | None:
        """What holds when nothing is set."""
        ...


class ControllerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the broker that the controller runs on, where topics set nothing else."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    max_partitions_per_request: int = 10_000


def is_partition_path(path: str) -> bool:
    """Whether a node belongs to a partition and not to its topic as a whole."""
    return path.startswith(TopicNode.ROOT) and path.count("/") > 3


class NodeVersions(msgspec.Struct):
    """The versions of the nodes that the controller writes, partition states apart.

    (A partition's partition epoch is the version of its state's node.)
    """

    known: dict[str, int] = {}

    def put(self, path: str, data: bytes) -> Operation:
        """Write a node that may or may not exist."""
        version = self.known.get(path)
        return Create(path, data) if version is None else Set(path, data, version)

    def remove(self, path: str) -> Group:
        """Delete a node, if it exists."""
        version = self.known.get(path)
        return () if version is None else (Delete(path, version),)

    def written(self, groups: Iterable[Group]) -> None:
        """Take note of writes that were made."""
        known = self.known
        for group in groups:
            for operation in group:
                path = operation.path
                if isinstance(operation, Set):
                    if path in known:
                        known[path] = operation.version + 1
                elif isinstance(operation, Delete):
                    known.pop(path, None)
                elif isinstance(operation, Create) and not is_partition_path(path):
                    known[path] = 0


class Core(msgspec.Struct):
    """All that decisions look at. Chance is among it, so that tests can do without."""

    state: ClusterState
    nodes: NodeVersions
    settings: ControllerSettings
    config_rules: ConfigRules
    new_topic_id: Callable[[], UUID]
    random_below: Callable[[int], int]
    # The broker epochs that the states of partitions already take into account.
    seen_epochs: dict[int, int] = {}
    # The ids of the log directories that brokers had under these epochs.
    seen_directories: dict[int, tuple[str, ...]] = {}
    # The brokers whose sessions live, registered or not.
    sessions: frozenset[int] = frozenset()
    # Whether the block of producer ids that was given out last is known.
    has_producer_ids: bool = True
    # Leader epochs that are left out at a partition's first election of this term, and the partitions that have had one.
    # If a backup of the store is restored, the elections behind it use other epochs than those of the lost store.
    epoch_gap: int = 0
    elected: set[tuple[str, int]] = set()
    # The largest write that the store accepts, in bytes; None if there is no limit.
    max_group_bytes: int | None = None

    def fits(self, group: Group) -> bool:
        """Whether the store takes these operations in one write."""
        return self.max_group_bytes is None or sum(map(weight, group)) <= self.max_group_bytes

    def live(self) -> set[int]:
        """The brokers that are registered."""
        return set(self.state.brokers)

    def eligible(self) -> set[int]:
        """The brokers that may be given something to do."""
        return self.state.eligible()

    def configured_min_isr(
        self, own: Mapping[str, str], common: Mapping[str, str] | None = None
    ) -> int:
        """min.insync.replicas by a topic's own configs, else the brokers' common ones, else this broker's settings.

        A value that is no number above 0 was written by hand into the store, and is passed over.
        """
        if common is None:
            common = self.state.config(ConfigKind.BROKER, ALL_BROKERS)
        for value in (own.get(MIN_ISR), common.get(MIN_ISR)):
            if value is not None and value.strip().isdecimal() and int(value) > 0:
                return int(value)
        return self.settings.min_insync_replicas

    def unclean_allowed(self, topic: str) -> bool:
        """The topic's unclean.leader.election.enable."""
        default = "true" if self.settings.unclean_leader_election_enable else "false"
        setting = self.state.topic_setting(topic, "unclean.leader.election.enable", default)
        return setting.strip().lower() == "true"

    def removed(self, live: Collection[int]) -> frozenset[int]:
        """Brokers whose registration was removed although their session lives: they may lead without knowing better.

        Until the session ends no partition of theirs has an unclean election, because it would lose what they take.
        """
        return self.sessions.difference(live)

    def write_partition(
        self, topic: str, index: int, after: PartitionState, *, leaves_epochs_out: bool = False
    ) -> tuple[Group, PartitionChanged]:
        """The write and the change that take a partition to its next state.

        `leaves_epochs_out`: as at the first election of a term.
        """
        before = self.state.topics[topic].partitions[index]
        if before.leader_epoch < after.leader_epoch and not before.is_new:
            is_first = (topic, index) not in self.elected
            epoch = after.leader_epoch + (is_first or leaves_epochs_out) * self.epoch_gap
            if epoch <= MAX_LEADER_EPOCH:
                after = with_epoch(after, epoch)
            former = (*before.former_epochs, before.leader_epoch)[-FORMER_EPOCHS_KEPT:]
            after = msgspec.structs.replace(after, former_epochs=former)
        after = msgspec.structs.replace(after, partition_epoch=before.partition_epoch + 1)
        data = self.partition_data(after)
        path = PartitionStateNode.path(topic, index)
        group: Group
        if before.is_new:
            group = (Create(path.removesuffix("/state")), Create(path, data))
        else:
            group = (Set(path, data, before.partition_epoch),)
        return group, PartitionChanged(topic, index, after)

    def partition_data(self, partition: PartitionState) -> bytes:
        """What a partition's state node holds."""
        return PartitionStateNode(
            controller_epoch=self.state.controller_epoch,
            leader=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            elr=partition.elr,
            last_known_elr=partition.last_known_elr,
            emptied=partition.emptied,
            min_isr=partition.min_isr,
            unclean_epoch=partition.unclean_epoch,
            crashed_epoch=partition.crashed_epoch,
            last_known_epoch=partition.last_known_epoch,
            former_epochs=partition.former_epochs,
        ).encode()


class Event(Protocol[A_co]):
    """A request to the controller or a change that it observed. `decide` makes the decision."""

    def decide(self, core: Core) -> Decision[A_co]:
        """Decide, without changing anything."""
        ...


class Controller(Protocol):
    """Has events decided: the driver on the controller's broker, the controller link on others."""

    async def ask(self, event: Event[A]) -> A:
        """Have something decided."""
        ...
