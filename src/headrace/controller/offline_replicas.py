"""Replicas that a living broker cannot use, because a disk of its own failed.

Owns what becomes of their partitions: such a replica leaves the ISR at once, what it led is elected elsewhere, and it is
no candidate until its broker says otherwise or comes back as another incarnation. What a failed disk still held does not
count as safe, so it is not eligible either (KIP-966); the last leader there was stays the last leader known.

Nothing of this is written down but the partitions' states. A broker tells all of it again whenever the picture lacks it,
so that the next controller hears of it as the last one did.
"""

from uuid import UUID

import msgspec

from headrace.controller.changes import BrokerRegistered, Change
from headrace.controller.core import Core, Decision, Group
from headrace.controller.elections import after_loss
from headrace.wire.error_code import ErrorCode


class ReplicasOffline(msgspec.Struct, frozen=True, kw_only=True):
    """All replicas (topic id and partition) that a broker cannot use now; none when all is well again."""

    broker_id: int
    broker_epoch: int
    replicas: frozenset[tuple[UUID, int]]

    def decide(self, core: Core) -> Decision[ErrorCode]:
        """Take note, and look after every partition that this touches."""
        broker = core.state.brokers.get(self.broker_id)
        if broker is None or broker.epoch != self.broker_epoch:
            return Decision(answer=ErrorCode.STALE_BROKER_EPOCH)
        if broker.offline == self.replicas:
            return Decision(answer=ErrorCode.NONE)
        told = msgspec.structs.replace(broker, offline=self.replicas)
        unusable = core.state.offline_replicas()
        groups: list[Group] = []
        changes: list[Change] = [BrokerRegistered(told)]
        for topic_id, index in sorted(broker.offline ^ self.replicas):
            topic = core.state.topics_by_id.get(topic_id)
            partition = None if topic is None else core.state.partition(topic.name, index)
            if topic is None or partition is None or partition.is_new:
                continue
            elsewhere = unusable.get((topic_id, index), set()) - {self.broker_id}
            lost = {self.broker_id} if (topic_id, index) in self.replicas else set()
            after = after_loss(
                partition,
                live=core.live() - lost,
                candidates=core.eligible() - elsewhere - lost,
                restarted=(),
                distrusted=lost,
                unclean=core.unclean_allowed(topic.name)
                and core.removed(core.live()).isdisjoint(partition.replicas),
            )
            if after != partition:
                group, change = core.write_partition(topic.name, index, after)
                groups.append(group)
                changes.append(change)
        return Decision(
            answer=ErrorCode.NONE,
            groups=tuple(groups),
            changes=tuple(changes),
        )
