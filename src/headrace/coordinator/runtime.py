"""Runtime of one kind of coordinator on this broker: its shards, one for each partition of its topic that this broker leads.

Owns the table of shards. It loads a shard when this broker is elected, closes it when the leadership is gone, and hands an
event to the shard that owns its key. What the events mean is left to the core, who leads what to the broker.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import Generic

from headrace.coordinator.contract import Machine, ShardLog, Token
from headrace.coordinator.coordinator_type import (
    CoordinatorHost,
    CoordinatorType,
    EventT,
    RecordT,
    ShardId,
)
from headrace.coordinator.partitioning import coordinator_partition
from headrace.coordinator.shard import Phase, Shard
from headrace.wire.error_code import ErrorCode

_UNASKED = Token(0)


class CoordinatorRuntime(Generic[EventT, RecordT]):
    """One event loop owns it."""

    def __init__(
        self,
        coordinator: CoordinatorType[EventT, RecordT],
        host: CoordinatorHost,
        *,
        partition_count: Callable[[], int],
    ) -> None:
        """`partition_count` is that of the topic; of the setting, as long as the topic does not exist."""
        self._coordinator = coordinator
        self._host = host
        self._partition_count = partition_count
        self._shards: dict[int, Shard[EventT, RecordT]] = {}

    @property
    def topic(self) -> str:
        """The internal topic that holds the coordinator's records."""
        return self._coordinator.topic

    @property
    def keys(self) -> str:
        """What the keys of the coordinator name."""
        return self._coordinator.keys

    # -- leadership ------------------------------------------------------------------------------

    def elected(self, partition: int, shard_log: ShardLog) -> None:
        """This broker leads a partition of the topic: load its records and answer for its keys."""
        self.resigned(partition)
        shard_id = ShardId(self.topic, partition, shard_log.leader_epoch)
        self._shards[partition] = Shard(shard_id, shard_log, self._coordinator, self._host)

    def resigned(self, partition: int) -> None:
        """This broker no longer leads the partition: who waits is sent to look for the coordinator."""
        shard = self._shards.pop(partition, None)
        if shard is not None:
            shard.close()

    def stop(self) -> None:
        """Give up every partition."""
        for partition in list(self._shards):
            self.resigned(partition)

    # -- events ----------------------------------------------------------------------------------

    def partition_for(self, key: str) -> int:
        """The partition of the topic whose leader coordinates the key."""
        return coordinator_partition(key, self._partition_count())

    async def ask(self, key: str, event_for: Callable[[Token], EventT]) -> object:
        """Hand an event to the shard that owns the key, and return its answer or its refusal."""
        shard = self._shards.get(self.partition_for(key))
        if shard is None or self._host.lease.is_over():
            return await self._refuse(event_for)
        return await shard.ask(event_for)

    def ask_partition(
        self, partition: int, event_for: Callable[[Token], EventT]
    ) -> Awaitable[object]:
        """Hand an event to the shard of a partition, now. Its answer or its refusal comes later."""
        shard = self._shards.get(partition)
        if shard is None or self._host.lease.is_over():
            return self._refuse(event_for)
        return shard.ask(event_for)

    async def _refuse(self, event_for: Callable[[Token], EventT]) -> object:
        return self._coordinator.refuse(event_for(_UNASKED), ErrorCode.NOT_COORDINATOR)

    def ask_all(self, event_for: Callable[[Token], EventT]) -> list[Awaitable[object]]:
        """Hand an event to every shard but those that have failed to load. One answer or refusal each."""
        return [
            shard.ask(event_for)
            for shard in list(self._shards.values())
            if shard.phase is not Phase.FAILED
        ]

    async def loaded(self) -> None:
        """Wait until no shard of now is still loading."""
        for shard in list(self._shards.values()):
            await shard.loaded()

    # -- what can be seen ------------------------------------------------------------------------

    def machines(self) -> Iterator[Machine[EventT, RecordT]]:
        """The cores, for counting."""
        for shard in self._shards.values():
            yield shard.machine

    @property
    def loading_partitions(self) -> frozenset[int]:
        """The partitions that answer COORDINATOR_LOAD_IN_PROGRESS right now."""
        return frozenset(p for p, shard in self._shards.items() if shard.phase is Phase.LOADING)

    @property
    def failed_partitions(self) -> dict[int, str]:
        """The partitions whose records could not be loaded, and why; they answer COORDINATOR_NOT_AVAILABLE."""
        failed = (item for item in self._shards.items() if item[1].phase is Phase.FAILED)
        return {partition: shard.failure for partition, shard in failed}
