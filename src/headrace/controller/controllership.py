"""The controllership: who holds it, how it is taken, and how its writes are fenced.

A rim over the store. Becoming controller and raising the controller epoch is one write. Every later
write of the holder is conditional on the epoch's node, so that a holder that lost the controllership without
knowing it can write nothing any more.
"""

import asyncio
import contextlib
from collections.abc import Sequence

import msgspec

from headrace.controller.core import Group
from headrace.coordination.nodes import ControllerEpochNode, ControllerNode
from headrace.coordination.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Set,
    Store,
    StoreFailed,
    WriteUncertain,
    weight,
)


class ControllershipLost(StoreFailed):
    """Another controller has been elected."""


class EpochFence(msgspec.Struct, frozen=True):
    """The right to write, of one controller epoch."""

    controller_epoch: int
    fence: Check


async def holder(store: Store) -> int:
    """The broker that holds the controllership, or -1."""
    node = await store.get(ControllerNode.PATH)
    return -1 if node is None else ControllerNode.decode(node.data).brokerid


async def take(store: Store, broker_id: int, now_ms: int) -> EpochFence | None:
    """become the controller if it is free; None if it is not."""
    node = await store.get(ControllerEpochNode.PATH)
    if node is None:
        raise StoreFailed(f"{ControllerEpochNode.PATH} is missing: was the tree prepared?")
    epoch = ControllerEpochNode.decode(node.data) + 1
    epoch_fence = EpochFence(epoch, Check(ControllerEpochNode.PATH, node.version + 1))
    claim = ControllerNode(broker_id, str(now_ms)).encode()
    try:
        await store.multi(
            [
                Create(ControllerNode.PATH, claim, ephemeral=True),
                Set(ControllerEpochNode.PATH, ControllerEpochNode.encode(epoch), node.version),
            ]
        )
    except (NodeExists, BadVersion):
        return None
    except WriteUncertain:
        # The claim carries our words and our time: if it is there, the answer was lost, not the controllership.
        controller_node = await store.get(ControllerNode.PATH)
        return (
            epoch_fence if controller_node is not None and controller_node.data == claim else None
        )
    return epoch_fence


async def give_up(store: Store, broker_id: int) -> None:
    """Give up the controllership, if this broker holds it."""
    node = await store.get(ControllerNode.PATH)
    if node is not None and ControllerNode.decode(node.data).brokerid == broker_id:
        with contextlib.suppress(NoNode, BadVersion):
            await store.multi([Delete(ControllerNode.PATH, node.version)])


async def wait_until_free(store: Store) -> None:
    """Wait until no broker holds the controllership."""
    changed = asyncio.Event()
    cancel = await store.watch_node(ControllerNode.PATH, changed.set)
    try:
        while await store.get(ControllerNode.PATH) is not None:
            await changed.wait()
            changed.clear()
    finally:
        cancel()


async def write(store: Store, epoch_fence: EpochFence, groups: Sequence[Group]) -> None:
    """Write groups in order, as many at a time as the store takes. Raises ControllershipLost."""
    for operations in batches(groups, store.max_multi_bytes):
        try:
            await store.multi([epoch_fence.fence, *operations])
        except (BadVersion, NoNode) as refusal:
            if refusal.path == epoch_fence.fence.path:
                raise ControllershipLost(
                    f"controller epoch {epoch_fence.controller_epoch} is over"
                ) from refusal
            raise


async def confirm(store: Store, epoch_fence: EpochFence) -> None:
    """Make sure that nobody else has written anything so far. Raises ControllershipLost."""
    try:
        await store.multi([epoch_fence.fence])
    except (BadVersion, NoNode) as refusal:
        raise ControllershipLost(
            f"controller epoch {epoch_fence.controller_epoch} is over"
        ) from refusal


def batches(groups: Sequence[Group], limit_bytes: int | None) -> list[list[Operation]]:
    """The groups' operations in runs that weigh no more than the limit; no group is torn."""
    runs: list[list[Operation]] = []
    run: list[Operation] = []
    run_bytes = 0
    for group in groups:
        group_bytes = sum(map(weight, group)) if limit_bytes is not None else 0
        if run and limit_bytes is not None and run_bytes + group_bytes > limit_bytes:
            runs.append(run)
            run, run_bytes = [], 0
        run.extend(group)
        run_bytes += group_bytes
    if run:
        runs.append(run)
    return runs
