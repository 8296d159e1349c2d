"""This broker's copy of the cluster state, and the addresses of brokers that it tells clients."""

from headrace.broker.net.connection import Connection
from headrace.controller.changes import ChangeBatch
from headrace.controller.cluster_state import ClusterState, follow
from headrace.controller.values import Broker, Endpoint


class ClusterView:
    """A copy of the controller's state, fed by its changes."""

    __slots__ = ("_tells_dialled_address", "broker_id", "cluster_id", "state")

    def __init__(self, broker_id: int, cluster_id: str, *, tells_dialled_address: bool) -> None:
        self.broker_id = broker_id
        self.cluster_id = cluster_id
        self.state = ClusterState()
        self._tells_dialled_address = tells_dialled_address

    def apply(self, batch: ChangeBatch) -> None:
        """Apply a batch of changes that the controller published."""
        self.state = follow(self.state, batch)

    def endpoint(self, broker: Broker, connection: Connection) -> Endpoint | None:
        """Where a client of this connection reaches `broker`: by the listener it came in on.

        Without advertised listeners a client is told the address that it dialled itself.
        """
        if broker.broker_id == self.broker_id and self._tells_dialled_address:
            host, port = connection.local_address
            return Endpoint(connection.listener_name, host, port)
        return broker.endpoint(connection.listener_name)
