"""What every step of the demo has at hand: the terminal, the servers, the cluster as a client sees it. A rim module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.cli.local.local_servers import ClusterPlan, LocalServers
from headrace.cli.local.port_reservations import PortReservations
from headrace.cli.shell.command_line import Failure
from headrace.cli.shell.stopping import StopRequest

if TYPE_CHECKING:
    from rich.console import Console

BROKERS: Final = 3
SESSION_MS: Final = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Who leads a partition, and which replicas are in sync."""

    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Stage:
    """One run of the demo."""

    def __init__(self, directory: Path, stop: StopRequest, ports: PortReservations) -> None:
        from rich.console import Console

        self.console: Console = Console(highlight=False)
        self.directory = directory
        self.stop = stop
        self._step = 0
        plan = ClusterPlan(
            directory=directory,
            zookeeper_port=ports.free(),
            broker_ports=[ports.free() for _ in range(BROKERS)],
            http_ports=[ports.free() for _ in range(BROKERS)],
            settings={
                "zookeeper.session.timeout.ms": str(SESSION_MS),
                "default.replication.factor": str(BROKERS),
                "offsets.topic.replication.factor": str(BROKERS),
                "offsets.topic.num.partitions": "10",
                "min.insync.replicas": "2",
                "group.initial.rebalance.delay.ms": "1000",
            },
        )
        self.servers = LocalServers(plan, stop)

    @property
    def address(self) -> str:
        return self.servers.bootstrap_servers

    # ---- the terminal

    def say(self, text: str) -> None:
        """The next step's first line."""
        self._step += 1
        self.console.print(f"[bold cyan]{self._step:>2}[/]  {text}")

    def add(self, text: str) -> None:
        """One more line of the same step."""
        self.console.print(f"    {text}")

    @contextmanager
    def bar(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """A progress bar with rate and remaining time, on a terminal only; gone at the end."""
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (TextColumn("    {task.description}"), BarColumn(), MofNCompleteColumn())
        rate = TextColumn("{task.fields[rate]}")
        with Progress(
            *columns,
            rate,
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        ) as progress:
            task = progress.add_task(what, total=total, rate="")

            def move(completed: int) -> None:
                speed = progress.tasks[0].speed
                rate_text = f"{speed:,.0f}/s" if speed else ""
                progress.update(task, completed=completed, rate=rate_text)

            yield move

    # ---- the cluster

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic with three replicas, and wait until all of them are in sync."""
        from headrace.client.admin.admin import Admin
        from headrace.client.admin.topics import create_topic
        from headrace.errors import HeadraceError

        try:
            with Admin(self.address, timeout_s=60) as admin:
                create_topic(admin, name, partitions=partitions, replication_factor=BROKERS)
        except HeadraceError as error:
            raise Failure(f"topic {name} could not be created", why=str(error)) from error
        self.wait_until_in_sync(name)

    def leaders(self, topic: str) -> Mapping[int, Leadership]:
        """The partitions of a topic as the cluster tells of them now; none while it cannot be asked."""
        from headrace.client.admin.admin import Admin
        from headrace.errors import HeadraceError

        try:
            with Admin(self.address, timeout_s=5) as admin:
                topics = admin.metadata([topic]).topics
        except HeadraceError:
            return {}
        return {
            each.partition_index: Leadership(
                leader=each.leader_id,
                replicas=tuple(each.replica_nodes),
                isr=tuple(sorted(each.isr_nodes)),
            )
            for found in topics
            for each in sorted(found.partitions, key=lambda each: each.partition_index)
        }

    def wait_until_in_sync(self, topic: str) -> None:
        def all_in_sync() -> bool:
            found = self.leaders(topic).values()
            return bool(found) and all(
                each.leader > 0 and set(each.isr) == set(each.replicas) for each in found
            )

        self.servers.wait_until(all_in_sync, f"all replicas of {topic} are in sync")


def require(holds: bool, text: str) -> None:  # noqa: FBT001 (reads as a sentence)
    """Raise Failure where something that was promised does not hold."""
    if not holds:
        raise Failure(text)
