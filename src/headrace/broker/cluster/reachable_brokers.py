"""Which brokers a client can reach through the listener it came in on, and which of them it should take for the controller."""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.net.connection import Connection
from headrace.controller.values import Endpoint

NO_BROKER = -1


def reachable_brokers(cluster: ClusterView, connection: Connection) -> dict[int, Endpoint]:
    """Every registered broker with an endpoint for this connection, in order of ids."""
    brokers = cluster.state.brokers
    return {
        broker_id: endpoint
        for broker_id in sorted(brokers)
        if (endpoint := cluster.endpoint(brokers[broker_id], connection)) is not None
    }


def controller_id(cluster: ClusterView, reachable: dict[int, Endpoint]) -> int:
    """The controller if the client can reach it; else this broker, because an admin client waits for ever without a controller."""
    for candidate in (cluster.state.controller_id, cluster.broker_id):
        if candidate in reachable:
            return candidate
    return NO_BROKER
