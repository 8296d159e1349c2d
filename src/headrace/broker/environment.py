"""What a broker takes from outside itself: clocks, chance, threads, network, disk, store, processes. A rim module.

Nothing below the wiring reads a clock, draws a number, starts a thread or a process, or opens a socket by itself: it is
given what it needs from here. The event loop is the other half of the surroundings; timers go by its time. A
simulation runs whole brokers on an environment and an event loop of its own.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random, SystemRandom
from time import perf_counter, thread_time
from typing import TypeAlias
from uuid import UUID

from headrace.broker.cluster.store_identity import STORE_FILE, refuse_missing_file
from headrace.broker.net.network import Network, SocketNetwork
from headrace.broker.pages.process_stats import ProcessStats, read_process_stats
from headrace.broker.upkeep.cleaner_process import CleanerOrder, CleanerReport
from headrace.broker.upkeep.cleaner_worker import run_in_process
from headrace.broker.upkeep.open_files import raise_limit
from headrace.broker.workers import Threads, Workers
from headrace.clock import Clock, wall_clock
from headrace.coordination.embedded import EmbeddedStore
from headrace.coordination.store import Store
from headrace.coordination.zookeeper import ZooKeeperStore
from headrace.ids import text_of_id
from headrace.log.files.disk import Disk
from headrace.log.files.os_disk import OsDisk
from headrace.settings.broker_settings import BrokerSettings

MakeStore: TypeAlias = Callable[[BrokerSettings, str | None], Store]
"""Makes the coordination store of a broker, from the settings and the cluster that its log directories name, if they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The surroundings of one broker."""

    clock: Clock
    monotonic: Callable[[], float]  # seconds, to measure how long something takes
    cpu_clock: Callable[[], float]  # seconds that the thread of the event loop has worked
    chance: Random
    workers: Workers
    network: Network
    disk: Disk
    max_connections: int  # that the operating system allows beside what else is open
    make_store: MakeStore
    run_compaction: Callable[[CleanerOrder], AsyncGenerator[CleanerReport]]
    process_stats: Callable[[], ProcessStats]

    def new_uuid(self) -> UUID:
        """An id that nobody else has."""
        return UUID(bytes=self.chance.randbytes(16), version=4)

    def new_topic_id(self) -> UUID:
        """The same for a topic. One that starts with a dash would look like an option to the tools."""
        while text_of_id(topic_id := self.new_uuid()).startswith("-"):
            pass
        return topic_id


def process_environment() -> Environment:
    """The surroundings of a broker in this process: the operating system's."""
    shares = raise_limit()
    return Environment(
        clock=wall_clock,
        monotonic=perf_counter,
        cpu_clock=thread_time,
        chance=SystemRandom(),
        workers=Threads(perf_counter),
        network=SocketNetwork(),
        disk=OsDisk(max_open_files=shares.segment_files),
        max_connections=shares.connections,
        make_store=store_for,
        run_compaction=run_in_process,
        process_stats=read_process_stats,
    )


def store_for(settings: BrokerSettings, cluster: str | None) -> Store:
    """ZooKeeper where there is one, else a file of this broker's own. WrongStore if that file should be there and is not."""
    if settings.zookeeper_connect is None:
        refuse_missing_file(settings, cluster)
        OsDisk().make_directory(settings.log_dirs[0])
        return EmbeddedStore(Path(settings.log_dirs[0]) / STORE_FILE)
    return ZooKeeperStore(
        settings.zookeeper_connect,
        session_timeout_ms=settings.zookeeper_session_timeout_ms,
        connection_timeout_ms=settings.zookeeper_connection_timeout_ms,
        creates_chroot=cluster is None,
    )
