"""The replica fetchers of this broker: one fetch loop for each broker that leads a partition replicated here."""

import asyncio
from collections.abc import Callable
from functools import partial

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.replicas.replica_throttle import ReplicaThrottle
from headrace.client.async_connection import AsyncConnection, Connect
from headrace.client.exchange import Disconnected
from headrace.clock import Clock
from headrace.errors import DiskFailed
from headrace.replication.fetch_loop import FetchLoop, FollowerSettings
from headrace.replication.partition import Partition
from headrace.settings.broker_settings import BrokerSettings


class FetchLoops:
    """The fetch loops of one broker."""

    def __init__(
        self,
        cluster: ClusterView,
        settings: BrokerSettings,
        broker_epoch: Callable[[], int],
        throttle: ReplicaThrottle,
        clock: Clock,
        tasks: asyncio.TaskGroup,
        connect: Connect,
        on_broken: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`on_broken` is called with the id of a leader whose connection was not closed by this broker."""
        self._cluster = cluster
        self._listener_name = settings.inter_broker_listener.name
        self._settings = FollowerSettings(
            max_wait_ms=settings.replica_fetch_wait_max_ms,
            min_bytes=settings.replica_fetch_min_bytes,
            partition_max_bytes=settings.replica_fetch_max_bytes,
            response_max_bytes=settings.replica_fetch_response_max_bytes,
            backoff_ms=settings.replica_fetch_backoff_ms,
            socket_timeout_ms=settings.replica_socket_timeout_ms,
        )
        self._broker_epoch = broker_epoch
        self._throttle = throttle
        self._clock = clock
        self._tasks = tasks
        self._connect = connect
        self._on_broken = on_broken
        self.on_log_start_moved: Callable[[], None] = lambda: (
            None
        )  # called when the disk under a follower's log fails
        self._loops: dict[int, FetchLoop] = {}
        self._running: list[asyncio.Task[None]] = []
        self._leaders: dict[Partition, int] = {}

    def follow(
        self,
        partition: Partition,
        leader_id: int,
        on_disk_failed: Callable[[Partition, DiskFailed], None],
    ) -> None:
        """Fetch a partition from its leader; -1 is no leader."""
        self.leave(partition)
        if leader_id < 0:
            return
        loop = self._loops.get(leader_id)
        if loop is None:
            loop = self._loops[leader_id] = FetchLoop(
                self._cluster.broker_id,
                partial(self._connect_to, leader_id),
                self._broker_epoch,
                self._settings,
                self._clock,
                on_disk_failed,
                self._throttle,
                lambda: self._on_broken(leader_id),
            )
            loop.on_log_start_moved = self.on_log_start_moved
            self._running.append(self._tasks.create_task(loop.run()))
        self._leaders[partition] = leader_id
        loop.add(partition)

    def leave(self, partition: Partition) -> None:
        """Stop fetching a partition, because this broker leads it or no longer hosts it."""
        leader_id = self._leaders.pop(partition, None)
        if leader_id is not None:
            self._loops[leader_id].remove(partition)

    def tell_log_starts(self) -> None:
        """Send log start offsets that have become durable to the leaders."""
        for loop in self._loops.values():
            loop.tell_log_starts()

    @property
    def max_lag(self) -> int:
        """How many committed records the replica that is furthest behind its leader lacks."""
        return max((loop.max_lag for loop in self._loops.values()), default=0)

    def stop(self) -> None:
        """End every loop."""
        for task in self._running:
            task.cancel()

    async def _connect_to(self, leader_id: int) -> AsyncConnection:
        broker = self._cluster.state.brokers.get(leader_id)
        endpoint = None if broker is None else broker.endpoint(self._listener_name)
        if endpoint is None:
            raise Disconnected(f"it is not known where broker {leader_id} is")
        client_id = f"replica-{self._cluster.broker_id}"
        return await self._connect(endpoint.host, endpoint.port, client_id=client_id)
