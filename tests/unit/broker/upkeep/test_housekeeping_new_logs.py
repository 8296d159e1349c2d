"""New logs are made durable in the background: soon, and not in the middle of a large creation."""

import asyncio
from time import perf_counter
from uuid import UUID

from headrace.broker.upkeep.housekeeping import Housekeeping
from headrace.broker.workers import Threads
from headrace.errors import DiskFailed
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.live_settings import LiveSettings
from headrace.testing.memory_disk import MemoryDisk

NOW_MS = 1_700_000_000_000


class World:
    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.log_dirs = LogDirs(
            self.disk, ["/d"], config_for=lambda _: LogConfig(), new_id=lambda: UUID(int=7)
        )
        self.log_dirs.open(NOW_MS)
        self.failures: list[str] = []
        self.housekeeping = Housekeeping(
            log_dirs=self.log_dirs,
            partitions=PartitionTable(),
            live_settings=LiveSettings(BrokerSettings.from_properties({})),
            clock=lambda: NOW_MS,
            workers=Threads(perf_counter),
            on_disk_failed=self.on_disk_failed,
            close_idle_connections=lambda: None,
            retry_after_full_disk=lambda: None,
        )

    def on_disk_failed(self, log: PartitionLog, error: DiskFailed) -> None:
        self.failures.append(str(error))
        self.log_dirs.take_offline("/d", str(error))

    def create(self, *numbers: int) -> None:
        for number in numbers:
            self.log_dirs.create(TopicPartition("t", number), UUID(int=1), now_ms=NOW_MS)

    def look(self) -> int:
        """Returns how many logs wait."""
        asyncio.run(self.housekeeping.sync_new_logs())
        return sum(len(directory.new_logs) for directory in self.log_dirs.online)


def test_it_happens_at_the_second_look() -> None:
    world = World()
    world.create(0, 1, 2)
    assert world.look() == 3, "more may come"
    assert world.look() == 0
    assert world.look() == 0


def test_it_is_not_put_off_for_ever() -> None:
    world = World()
    waiting = []
    for number in range(7):
        world.create(number)
        waiting.append(world.look())
    assert waiting == [1, 2, 3, 4, 5, 0, 1]


def test_many_cost_one_sync_of_their_volume() -> None:
    world = World()
    world.create(*range(200))
    world.look()
    before = world.disk.syncs
    assert world.look() == 0
    assert world.disk.syncs - before == 1


def test_a_sync_that_fails_takes_the_directory_along() -> None:
    world = World()
    world.create(0)
    world.look()
    world.disk.fail_syncs = True
    world.look()
    assert len(world.failures) == 1
    assert list(world.log_dirs.offline) == ["/d"]
