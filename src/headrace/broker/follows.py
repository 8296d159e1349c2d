"""The seam between roles and what fetches from leaders: `followers.Followers` in a broker, another in the simulation."""

from collections.abc import Callable
from typing import Protocol

from headrace.errors import DiskFailed
from headrace.replication.partition import Partition


class Following(Protocol):
    """Where the logs of led-elsewhere partitions get their records from."""

    def follow(
        self,
        partition: Partition,
        leader_id: int,
        on_disk_failed: Callable[[Partition, DiskFailed], None],
    ) -> None:
        """Follow a partition at its leader; -1 is nobody."""

    def leave(self, partition: Partition) -> None:
        """No longer follow it."""
