"""Leaders of partitions as this broker sees the cluster, and connections to them over the listener between brokers."""

from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.client.async_connection import AsyncConnection, Connect
from headrace.client.exchange import Disconnected
from headrace.ids import TopicPartition

NO_LEADER: Final = -1


class PartitionLeaders:
    """Leaders of partitions, this broker included, and connections to other brokers."""

    def __init__(
        self, cluster: ClusterView, listener_name: str, connect: Connect, *, client_id: str
    ) -> None:
        self._cluster = cluster
        self._listener_name = listener_name
        self._connect = connect
        self._client_id = client_id

    def leader_of(self, partition: TopicPartition) -> int | None:
        """The broker that leads the partition, `NO_LEADER` if none does or it is not registered, or None if there is no such partition."""
        state = self._cluster.state
        found = state.partition(partition.topic, partition.partition)
        if found is None:
            return None
        return found.leader if found.leader in state.brokers else NO_LEADER

    async def connect_to(self, broker_id: int) -> AsyncConnection:
        """A connection to the broker. Raises Disconnected if it is not known where it is."""
        broker = self._cluster.state.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self._listener_name)
        if endpoint is None:
            raise Disconnected(f"it is not known where broker {broker_id} is")
        return await self._connect(endpoint.host, endpoint.port, client_id=self._client_id)
