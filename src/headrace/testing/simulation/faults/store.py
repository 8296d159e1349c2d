"""The coordination store: sessions that end, nodes that are removed, an ensemble that is away."""

from headrace.coordination.nodes import (
    ROOTS,
    BrokerNode,
    ClusterIdNode,
    ControllerEpochNode,
    ControllerNode,
)
from headrace.coordination.store import Create, Delete, Operation
from headrace.testing.simulation.broker import Condition
from headrace.testing.simulation.faults.act import Act


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


def forget(act: Act) -> None:
    """The ensemble comes back empty, or as another cluster's, while brokers run; later it has its data again.

    Not while a broker starts: one with an empty disk would rightly found a new cluster there.
    """
    ensemble, brokers = act.around.ensemble, act.around.brokers.values()
    if ensemble.has_forgotten or not all(
        broker.is_ready and broker.condition is Condition.UP for broker in brokers
    ):
        return
    is_of_another_cluster = act.chance.random() < 0.5
    act.tell(
        "the store has lost everything"
        + (" and is another cluster's" if is_of_another_cluster else "")
    )
    creations = [
        *(Create(path) for path in ROOTS),
        Create(ClusterIdNode.PATH, ClusterIdNode("another-cluster").encode()),
        Create(ControllerEpochNode.PATH, ControllerEpochNode.encode(0)),
    ]
    ensemble.forget(creations if is_of_another_cluster else ())

    act.undo_later(ensemble.remember)
