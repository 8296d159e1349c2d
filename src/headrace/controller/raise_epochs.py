"""Leader epochs and producer ids of a coordination store that is older than the logs, because a backup of it was restored.

Owns how both are raised above what the logs have seen. A leader epoch that is used by two leaderships would let their records pass
for the same, and a producer id that is given out twice would make the records of its second owner duplicates of the first one's.
"""

from typing import Final
from uuid import UUID

import msgspec

from headrace.controller.changes import Change, ProducerIdsAllocated
from headrace.controller.core import MAX_LEADER_EPOCH, Core, Decision, Group
from headrace.controller.elections import with_epoch
from headrace.coordination.nodes import ProducerIdBlockNode
from headrace.wire.error_code import ErrorCode

# Producer ids are given out one after the other from 0, so those of a cluster never reach this many for each second of the clock.
PRODUCER_IDS_A_SECOND: Final = 1 << 20


class LogEpoch(msgspec.Struct, frozen=True, kw_only=True):
    """The newest leader epoch in the log of one partition."""

    topic_id: UUID
    partition: int
    leader_epoch: int


class RaiseEpochs(msgspec.Struct, frozen=True, kw_only=True):
    """A broker cannot lead partitions, because its logs have seen their leader epochs already.

    `first_producer_id` is the lowest producer id that may still be given out; -1 if any may.
    """

    broker_id: int
    broker_epoch: int
    logs: tuple[LogEpoch, ...]
    first_producer_id: int = -1

    def decide(self, core: Core) -> Decision[ErrorCode]:
        """Raise the leader epochs of partitions that this broker leads, and the next producer id."""
        broker = core.state.brokers.get(self.broker_id)
        if broker is None or broker.epoch != self.broker_epoch:
            return Decision(answer=ErrorCode.STALE_BROKER_EPOCH)
        groups: list[Group] = []
        changes: list[Change] = []
        for log in dict.fromkeys(self.logs):
            topic = core.state.topics_by_id.get(log.topic_id)
            before = None if topic is None else core.state.partition(topic.name, log.partition)
            if topic is None or before is None or before.is_new or before.leader != self.broker_id:
                continue
            if before.leader_epoch <= log.leader_epoch < MAX_LEADER_EPOCH:
                after = with_epoch(before, log.leader_epoch + 1)
                # The epochs directly above may be in logs of other brokers.
                group, change = core.write_partition(
                    topic.name, log.partition, after, leaves_epochs_out=True
                )
                groups.append(group)
                changes.append(change)
        if self.first_producer_id > core.state.next_producer_id:
            block = ProducerIdBlockNode.of(self.broker_id, self.first_producer_id - 1, 1)
            groups.append((core.nodes.put(ProducerIdBlockNode.PATH, block.encode()),))
            changes.append(ProducerIdsAllocated(self.first_producer_id))
        return Decision(answer=ErrorCode.NONE, groups=tuple(groups), changes=tuple(changes))
