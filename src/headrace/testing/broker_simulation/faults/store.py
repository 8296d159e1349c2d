"""The coordination store: sessions that end, nodes that are removed, an ensemble that is away."""

from headrace.coordination.nodes import BrokerNode, ControllerNode
from headrace.coordination.store import Delete, Operation
from headrace.testing.broker_simulation.faults.act import Act


def expire(act: Act) -> None:
    """The store ends a session although its owner lives."""
    if act.target.client is not None:
        act.tell(f"the store ends the session of {act.target.name}")
        act.around.ensemble.end_session(act.target.client.session)


def remove(act: Act) -> None:
    """A living broker's registration is removed, and its controllership, as two others do who take it for dead."""
    tree, broker_id = act.around.ensemble.tree, act.target.broker_id
    removals: list[Operation] = []
    if tree.get(BrokerNode.path(broker_id)) is not None:
        removals.append(Delete(BrokerNode.path(broker_id)))
    node = tree.get(ControllerNode.PATH)
    if node is not None and ControllerNode.decode(node.data).brokerid == broker_id:
        removals.append(Delete(ControllerNode.PATH))
    if removals:
        act.tell(f"the registration of {act.target.name} is removed")
        tree.write(removals, 0)


def unseat(act: Act) -> None:
    """The controllership is taken away."""
    tree = act.around.ensemble.tree
    if tree.get(ControllerNode.PATH) is not None:
        act.tell("the controllership is taken away")
        tree.write([Delete(ControllerNode.PATH)], 0)


def stop_ensemble(act: Act) -> None:
    """No server of the store answers; sessions do not end meanwhile."""
    process = act.around.ensemble.process
    act.tell("the store does not answer")
    process.pause()
    act.undo_later(process.resume)
