"""Blocks of producer ids, each given to one broker and never twice (AllocateProducerIds)."""

import msgspec

from headrace.controller.changes import ProducerIdsAllocated
from headrace.controller.core import Core, Decision
from headrace.coordination.nodes import ProducerIdBlockNode
from headrace.wire.error_code import ErrorCode

BLOCK_LENGTH = 1000


class ProducerIdBlock(msgspec.Struct, frozen=True, kw_only=True):
    """Ids from `first` on, `length` of them."""

    error: ErrorCode = ErrorCode.NONE
    first: int = -1
    length: int = 0


class AllocateProducerIds(msgspec.Struct, frozen=True, kw_only=True):
    """A broker has used its ids up."""

    broker_id: int
    broker_epoch: int

    def decide(self, core: Core) -> Decision[ProducerIdBlock]:
        """Give the next block."""
        broker = core.state.brokers.get(self.broker_id)
        if broker is None or broker.epoch != self.broker_epoch:
            return Decision(answer=ProducerIdBlock(error=ErrorCode.STALE_BROKER_EPOCH))
        if not core.has_producer_ids:
            return Decision(answer=ProducerIdBlock(error=ErrorCode.COORDINATOR_NOT_AVAILABLE))
        first = core.state.next_producer_id
        node = ProducerIdBlockNode.of(self.broker_id, first, BLOCK_LENGTH)
        return Decision(
            answer=ProducerIdBlock(first=first, length=BLOCK_LENGTH),
            groups=((core.nodes.put(ProducerIdBlockNode.PATH, node.encode()),),),
            changes=(ProducerIdsAllocated(first + BLOCK_LENGTH),),
        )
