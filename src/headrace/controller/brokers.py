"""Events of brokers: registration, loss, restart and controlled shutdown.

Owns what becomes of partitions then. A broker's registration is seen through its epoch: an epoch
that the partitions' states do not yet take into account is a new incarnation, and whatever its
predecessor led is elected anew with a new leader epoch, even if nobody noticed its absence.
The epoch is written down as seen only together with, or after, the partitions it touches.
"""

from collections.abc import Collection, Mapping

import msgspec

from headrace.controller.changes import (
    BrokerRegistered,
    BrokerShuttingDown,
    BrokerUnregistered,
    Change,
)
from headrace.controller.core import Core, Decision, Group
from headrace.controller.elections import (
    after_loss,
    clean_leader,
    first_leader,
    with_isr,
    with_leader,
    with_min_isr,
)
from headrace.controller.values import NO_LEADER, Broker, ConfigKind, PartitionState
from headrace.coordination.nodes import BrokerEpochNode
from headrace.ids import TopicPartition
from headrace.wire.error_code import ErrorCode


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """A broker as it registered itself."""

    broker: Broker
    # The epoch of its last incarnation if that one shut down cleanly, else -1; and of the first one since when all did.
    previous_epoch: int = -1
    clean_since_epoch: int = -1
    # The ids of the log directories that it could open, and how many it could not open.
    directories: tuple[str, ...] = ()
    offline_directories: int = 0

    def follows_cleanly(self, seen_epoch: int | None) -> bool:
        """Whether no record was lost since the broker epoch that was last seen: all runs since then ended cleanly."""
        if seen_epoch is None or self.clean_since_epoch == -1:
            return seen_epoch == self.previous_epoch
        return self.clean_since_epoch <= seen_epoch <= self.previous_epoch

    def missing_directories(self, seen: Collection[str]) -> tuple[str, ...]:
        """The log directories that an earlier run opened and this one did not. Empty if this registration names none at all."""
        if not self.directories:
            return ()
        return tuple(each for each in seen if each not in self.directories)


class UpdateBrokers(msgspec.Struct, frozen=True, kw_only=True):
    """Event: these brokers are registered now, and no others."""

    registrations: Mapping[int, Registration]

    def decide(self, core: Core) -> Decision[None]:
        """Update the registrations, and leader and ISR of every partition that a broker's coming or going concerns."""
        known = core.state.brokers
        changes: list[Change] = [
            BrokerUnregistered(broker_id)
            for broker_id in known
            if broker_id not in self.registrations
        ]
        restarted: set[int] = set()
        distrusted: set[int] = set()
        emptied: set[int] = set()
        epochs: list[Group] = []
        for broker_id, registration in sorted(self.registrations.items()):
            seen = core.seen_epochs.get(broker_id)
            directories = core.seen_directories.get(broker_id, ())
            if seen != registration.broker.epoch:
                restarted.add(broker_id)
                if not registration.follows_cleanly(seen):
                    distrusted.add(broker_id)
                missing = registration.missing_directories(directories)
                if len(missing) > registration.offline_directories:
                    emptied.add(broker_id)
                    missing = ()
                directories = (*registration.directories, *missing)
                path = BrokerEpochNode.path(broker_id)
                noted = BrokerEpochNode(registration.broker.epoch, directories)
                epochs.append((core.nodes.put(path, noted.encode()),))
            broker = msgspec.structs.replace(registration.broker, directories=directories)
            before = known.get(broker_id)
            if before is None or before.epoch != broker.epoch:
                changes.append(BrokerRegistered(broker))
        groups, partition_changes = self._settle(core, restarted, distrusted, emptied)
        return Decision(
            answer=None,
            groups=(*groups, *epochs),
            changes=(*changes, *partition_changes),
        )

    def _settle(
        self,
        core: Core,
        restarted: Collection[int],
        distrusted: Collection[int],
        emptied: Collection[int],
    ) -> tuple[list[Group], list[Change]]:
        live = set(self.registrations)
        leaving = {
            id_
            for id_, broker in core.state.brokers.items()
            if broker.shutting_down and id_ not in restarted
        }
        candidates = live - leaving
        steady = live.difference(restarted)
        offline = core.state.offline_replicas()
        removed = core.removed(live)
        groups: list[Group] = []
        changes: list[Change] = []
        for name, topic in core.state.topics.items():
            min_isr = core.configured_min_isr(core.state.config(ConfigKind.TOPIC, name))
            unclean = core.unclean_allowed(name)
            for index, before in enumerate(topic.partitions):
                partition = with_min_isr(before, min_isr)
                untouched = partition.leader in steady and steady.issuperset(partition.isr)
                if untouched and not partition.elr and partition is before:
                    continue
                if partition.is_new:
                    after = first_leader(partition, live)
                else:
                    after = after_loss(
                        partition,
                        live=live,
                        candidates=candidates
                        - (offline.get((topic.topic_id, index), set()) & steady),
                        restarted=restarted,
                        distrusted=distrusted,
                        emptied=emptied,
                        unclean=unclean and removed.isdisjoint(partition.replicas),
                    )
                if after != before and not (before.is_new and after.leader == NO_LEADER):
                    group, change = core.write_partition(name, index, after)
                    groups.append(group)
                    changes.append(change)
        return groups, changes


class ElectOfflinePartitions(msgspec.Struct, frozen=True, kw_only=True):
    """Event: elections that were impossible may be possible now, because a config has changed."""

    def decide(self, core: Core) -> Decision[None]:
        """Try to elect a leader for every partition without one."""
        everyone = {id_: Registration(broker=broker) for id_, broker in core.state.brokers.items()}
        groups, changes = UpdateBrokers(registrations=everyone)._settle(core, (), (), ())
        return Decision(answer=None, groups=tuple(groups), changes=tuple(changes))


class ShutdownAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The partitions that a stopping broker still leads, because no other broker can lead them."""

    error: ErrorCode = ErrorCode.NONE
    remaining: tuple[TopicPartition, ...] = ()


class ControlledShutdown(msgspec.Struct, frozen=True, kw_only=True):
    """Event: a broker is about to stop. Its leaderships move to other brokers first."""

    broker_id: int
    broker_epoch: int

    def decide(self, core: Core) -> Decision[ShutdownAnswer]:
        """Move what can be moved, and name what cannot."""
        broker = core.state.brokers.get(self.broker_id)
        if broker is None:
            return Decision(answer=ShutdownAnswer(error=ErrorCode.BROKER_NOT_AVAILABLE))
        if broker.epoch != self.broker_epoch:
            return Decision(answer=ShutdownAnswer(error=ErrorCode.STALE_BROKER_EPOCH))
        others = core.eligible() - {self.broker_id}
        groups: list[Group] = []
        changes: list[Change] = []
        if not broker.shutting_down:
            changes.append(BrokerShuttingDown(self.broker_id))
        remaining = []
        for name, topic in core.state.topics.items():
            for index, partition in enumerate(topic.partitions):
                after = _relieved(partition, self.broker_id, others)
                if after != partition:
                    group, change = core.write_partition(name, index, after)
                    groups.append(group)
                    changes.append(change)
                if after.leader == self.broker_id:
                    remaining.append(TopicPartition(name, index))
        answer = ShutdownAnswer(remaining=tuple(remaining))
        return Decision(answer=answer, groups=tuple(groups), changes=tuple(changes))


def _relieved(partition: PartitionState, broker_id: int, others: Collection[int]) -> PartitionState:
    """The partition without this broker in its ISR, unless that would leave it without leader."""
    if broker_id not in partition.isr:
        return partition
    rest = tuple(replica for replica in partition.isr if replica != broker_id)
    if partition.leader in rest:
        return with_isr(partition, rest)
    heir = clean_leader(partition, [replica for replica in rest if replica in others])
    if heir is None or partition.leader == NO_LEADER:
        return partition
    return with_isr(with_leader(partition, heir), rest)
