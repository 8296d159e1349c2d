"""A term on a store whose answers get lost."""

import asyncio
from uuid import UUID

from headrace.controller import controllership
from headrace.controller.core import ControllerSettings
from headrace.controller.term import Term, TermContext
from headrace.coordination.membership import prepare
from headrace.coordination.nodes import BrokerEpochNode, BrokerNode
from headrace.coordination.store import WriteUncertain
from headrace.testing.memory_store import Leg, MemoryStore, MemoryTree
from tests.unit.controller.cluster_model import PlainRules


async def register(store: MemoryStore, broker_id: int) -> int:
    node = BrokerNode(
        listener_security_protocol_map={"PLAINTEXT": "PLAINTEXT"},
        endpoints=(f"PLAINTEXT://b:{9092 + broker_id}",),
        host="b",
        port=9092 + broker_id,
        timestamp="1",
    )
    return (await store.create(BrokerNode.path(broker_id), node.encode())).created_txn


def test_what_was_seen_before_everything_was_read_again_is_not_believed_any_more() -> None:
    """A broker registers anew while the controller does not know what became of its write."""
    tree = MemoryTree()
    others = MemoryStore(tree)
    newest: list[int] = []
    is_answer_lost = False

    async def travel(leg: Leg) -> None:
        nonlocal is_answer_lost
        if is_answer_lost and leg is Leg.BACK_FROM_WRITE:
            is_answer_lost = False
            await others.delete(BrokerNode.path(1))
            newest.append(await register(others, 1))
            raise WriteUncertain("the connection broke")

    async def story() -> None:
        nonlocal is_answer_lost
        store = MemoryStore(tree, travel)
        await store.open()
        await others.open()
        await prepare(others)
        first = await register(others, 1)
        epoch_fence = await controllership.take(store, 1, 0)
        assert epoch_fence is not None
        settings = ControllerSettings()
        parts = TermContext(store, 1, settings, PlainRules(), lambda: UUID(int=1), lambda _: 0)
        term = Term(parts, epoch_fence, lambda batch: None)
        await term.catch_up()
        assert term.state.brokers[1].epoch == first
        await register(others, 2)
        is_answer_lost = True
        await term.look_at_brokers()
        assert newest
        assert newest[0] > first
        assert term.state.brokers[1].epoch == newest[0]
        assert set(term.state.brokers) == {1, 2}
        noted = tree.get(BrokerEpochNode.path(1))
        assert noted is not None
        assert BrokerEpochNode.decode(1, noted.data).epoch == newest[0]

    asyncio.run(story())
