"""Metadata and connections for reading and writing records: who leads which partition, or serves it instead. Blocking.

Owns its connections and the replicas that leaders named for reading. One thread uses it.
"""

from __future__ import annotations

from headrace.client.brokers import Address, Brokers, parse_addresses
from headrace.client.cluster_metadata import ClusterMetadata
from headrace.client.connection import Connection
from headrace.client.read_replica import ReadReplicas
from headrace.client.retries import REAL_TIME, BlockingTime


class Leaders(ClusterMetadata[Connection]):
    """Finds the broker that serves a partition. Close it."""

    def __init__(
        self,
        bootstrap_servers: str,
        *,
        client_id: str = "headrace",
        timeout_s: float = 30.0,
        blocking_time: BlockingTime = REAL_TIME,
    ) -> None:
        def connect(address: Address) -> Connection:
            return Connection(address.host, address.port, client_id=client_id, timeout_s=timeout_s)

        addresses = parse_addresses(bootstrap_servers)
        super().__init__(
            Brokers(addresses, connect=connect, blocking_time=blocking_time), blocking_time
        )
        self.read_replicas = ReadReplicas()
