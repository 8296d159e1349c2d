"""One broker of a simulated cluster over all its lives: the host, the disk, and the real `Broker` that runs there now.

Owns how a process is started, killed, paused, stopped, loses power or its disk. What runs in the process is
`headrace.broker.main.Broker`, wired as in production, with the virtual surroundings of its host.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache
from random import Random
from typing import Any, Final, Protocol, TypeVar, cast

from headrace.broker.environment import Environment
from headrace.broker.main import Broker
from headrace.broker.net.network import SocketNetwork
from headrace.broker.pages.process_stats import ProcessStats
from headrace.broker.upkeep.cleaner_process import CleanerOrder, CleanerReport, do_job
from headrace.broker.wiring import BrokerComponents
from headrace.coordination.lease import OnConfirmed
from headrace.coordination.store import Store
from headrace.coordination.zookeeper import ZooKeeperStore
from headrace.coordination.zookeeper_client import ZooKeeperClient
from headrace.log.files.disk import Disk
from headrace.log.files.meta_properties import META_PROPERTIES_FILE
from headrace.settings.broker_settings import BrokerSettings
from headrace.testing.memory_disk import MemoryDisk, MemoryFile
from headrace.testing.simulation.story import Story
from headrace.testing.virtual.process import Pace, ProcessState, VirtualProcess
from headrace.testing.virtual.scheduler import MILLISECOND_US
from headrace.testing.virtual.world import VirtualWorld
from headrace.testing.virtual.zookeeper import VirtualEnsemble
from headrace.testing.virtual.zookeeper_client import VirtualZooKeeperClient

T = TypeVar("T")
R = TypeVar("R")

PORT: Final = 9092
LOG_DIRS: Final = ("/a", "/b")
_MAX_CONNECTIONS: Final = 1_000
_HOLD_BACK_US: Final = 500 * MILLISECOND_US


class Condition(Enum):
    """How a broker is."""

    UP = "up"
    PAUSED = "paused"
    DOWN = "down"


class ClusterAround(Protocol):
    """What a broker needs of the simulated cluster."""

    seed: int
    world: VirtualWorld
    ensemble: VirtualEnsemble
    story: Story

    def stepped(self, broker: "SimulatedBroker") -> None:
        """A callback of the broker's process has run."""

    def ended(self, broker: "SimulatedBroker", error: BaseException | None) -> None:
        """The broker has ended by itself, after an orderly stop or because of an error."""


class SimulatedBroker:
    """A broker's host with what lies on its disk, and the process that runs there, if one does."""

    def __init__(
        self,
        around: ClusterAround,
        broker_id: int,
        properties: Mapping[str, str],
        pace: Pace,
    ) -> None:
        self.around = around
        self.broker_id = broker_id
        self.host = host_of(broker_id)
        self.properties = dict(properties)
        self.pace = pace
        self.disk = MemoryDisk()
        self.life = 0
        self.process: VirtualProcess | None = None
        self.broker: Broker | None = None
        self.client: VirtualZooKeeperClient | None = None
        self.is_ready = False  # clients were served in this life
        self.wall_offset_us = 0
        self.is_older = False  # the version that will be started next
        self._runs_older = False

    @property
    def name(self) -> str:
        """As the story calls it: `broker 2.3` is the third life of broker 2."""
        return f"broker {self.broker_id}.{self.life}"

    @property
    def log_dirs(self) -> list[str]:
        """Its log directories."""
        return self.properties["log.dirs"].split(",")

    @property
    def condition(self) -> Condition:
        """Whether its process runs."""
        if self.process is None:
            return Condition.DOWN
        return Condition.PAUSED if self.process.state is ProcessState.PAUSED else Condition.UP

    @property
    def parts(self) -> BrokerComponents | None:
        """The parts of the running broker, once it has them."""
        return None if self.broker is None else self.broker.parts

    @property
    def broker_epoch(self) -> int:
        """That of the present registration; -1 before the first."""
        return -1 if self.parts is None else self.parts.broker_epoch()

    @property
    def runs_older(self) -> bool:
        """Whether its process is of the older version."""
        return self._runs_older and self.process is not None

    # ---- life and death

    def start(self) -> None:
        """Start a process on what the disk holds."""
        assert self.process is None, f"{self.name} runs"
        around = self.around
        if around.ensemble.has_forgotten and not self._belongs_to_a_cluster:
            around.world.scheduler.after(_HOLD_BACK_US, self._start_if_down)
            return
        self.life += 1
        self._runs_older = self.is_older
        self.is_ready = False
        process = self.process = around.world.process(
            self.host, pace=self.pace, after_step=lambda _: around.stepped(self)
        )
        process.wall_offset_us = self.wall_offset_us
        self.disk.clock = process.wall_clock_ms
        around.world.network.silent_hosts.discard(self.host)
        around.story.tell(f"{self.name} starts")
        process.loop.create_task(self._run(process))

    @property
    def _belongs_to_a_cluster(self) -> bool:
        """Whether it would refuse another cluster's store."""
        with self.disk.observed():
            return any(
                self.disk.read_bytes(f"{directory}/{META_PROPERTIES_FILE}")
                for directory in self.log_dirs
            )

    def _start_if_down(self) -> None:
        if self.process is None:
            self.start()

    async def _run(self, process: VirtualProcess) -> None:
        settings = settings_of(tuple(sorted(self.properties.items())))
        broker = self.broker = Broker(settings, self._environment(process))
        error: BaseException | None = None
        try:
            await broker.run(on_ready=self._ready)
        except Exception as failure:  # noqa: BLE001 (judged by the cluster)
            error = failure
        self._forget_process()
        # Out of its own callback: the kernel ends what is left of the process.
        around = self.around
        around.world.scheduler.after(0, process.end)
        around.ended(self, error)

    def _ready(self) -> None:
        self.is_ready = True
        self.around.story.tell(f"{self.name} serves clients")

    def _forget_process(self) -> None:
        self.process = None
        self.broker = None
        self.disk.owner_ended()

    def stop(self) -> None:
        """SIGTERM."""
        if self.broker is not None and self.process is not None:
            self.process.loop.call_soon(self.broker.stop)

    def kill(self) -> None:
        """SIGKILL: what was written stays."""
        process = self._require_process()
        self._forget_process()
        process.end()

    def lose_power(self, chance: Random) -> None:
        """The machine is without power: what was not synced is gone, wholly or in part, and nobody is told."""
        process = self._require_process()
        self._forget_process()
        self.around.world.network.silent_hosts.add(self.host)
        process.end(with_host=True)
        self.disk.crash(chance)

    def lose_disk(self) -> None:
        """The process is killed, and the next one finds an empty disk."""
        self.kill()
        self.disk = MemoryDisk()

    def pause(self) -> None:
        """SIGSTOP."""
        self._require_process().pause()

    def resume(self) -> None:
        """SIGCONT."""
        self._require_process().resume()

    def _require_process(self) -> VirtualProcess:
        assert self.process is not None, f"{self.name} does not run"
        return self.process

    def set_wall_offset(self, offset_us: int) -> None:
        """Let the host's wall clock be off."""
        self.wall_offset_us = offset_us
        if self.process is not None:
            self.process.wall_offset_us = offset_us

    # ---- environment

    def _environment(self, process: VirtualProcess) -> Environment:
        disk, loop = self.disk, process.loop

        async def run_compaction(order: CleanerOrder) -> AsyncGenerator[CleanerReport]:
            own_disk = _DiskOfAnotherProcess(disk)
            reports = do_job(cast(Disk, own_disk), order)
            try:
                while (report := await asyncio.to_thread(next, reports, None)) is not None:
                    yield report
            finally:
                own_disk.end()

        return Environment(
            clock=process.wall_clock_ms,
            monotonic=loop.time,
            cpu_clock=loop.time,
            chance=Random(f"{self.around.seed}:{self.broker_id}:{self.life}"),
            workers=_Workers(),
            network=_NetworkOfHost(self.host),
            disk=disk,
            max_connections=_MAX_CONNECTIONS,
            make_store=lambda settings, _: self._make_store(settings, process),
            run_compaction=run_compaction,
            process_stats=lambda: ProcessStats(
                cpu_seconds=loop.time(), loop_cpu_seconds=loop.time(), gc_generations=()
            ),
        )

    def _make_store(self, settings: BrokerSettings, process: VirtualProcess) -> Store:
        assert settings.zookeeper_connect is not None

        def make_client(_: str, timeout_s: float, on_confirmed: OnConfirmed) -> ZooKeeperClient:
            self.client = VirtualZooKeeperClient(
                process, self.around.ensemble.mailbox, timeout_s, on_confirmed
            )
            return self.client

        return ZooKeeperStore(
            settings.zookeeper_connect,
            session_timeout_ms=settings.zookeeper_session_timeout_ms,
            connection_timeout_ms=settings.zookeeper_connection_timeout_ms,
            make_client=make_client,
            clock=process.loop.time,
        )


class _NetworkOfHost(SocketNetwork):
    """A broker's own network code. Its sockets are those of the virtual event loop."""

    def __init__(self, host: str) -> None:
        self._host = host

    def host_name(self) -> str:
        return self._host


class _Workers:
    """Worker threads of the virtual event loop."""

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)

    def map(self, threads: int, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        return map(work, items)


class _DiskOfAnotherProcess:
    """The same disk; files that the other process opened are closed when it ends."""

    def __init__(self, disk: MemoryDisk) -> None:
        self._disk = disk
        self._files: list[MemoryFile] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def open(self, path: str, size: int | None = None) -> MemoryFile:
        self._files.append(self._disk.open(path, size))
        return self._files[-1]

    def create(self, path: str) -> MemoryFile:
        self._files.append(self._disk.create(path))
        return self._files[-1]

    def end(self) -> None:
        for file in self._files:
            file.close()


def host_of(broker_id: int) -> str:
    """The name of a broker's host."""
    return f"broker-{broker_id}"


@cache
def settings_of(properties: tuple[tuple[str, str], ...]) -> BrokerSettings:
    """Settings, read once: every life and every seed has nearly the same."""
    return BrokerSettings.from_properties(dict(properties))
