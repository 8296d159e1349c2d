"""The order of a comparison: rounds, in each of which every server is started fresh, warmed up and measured.

A machine that is shared is fast in one minute and slow in the next, so what is compared is measured close together: all
servers are there in a round, and each run is made with one after the other while the rest stand idle. Who goes
first changes from run to run and from round to round. A family of runs says what it measures; this module says when. Families of
a single broker share one life of it in a round; the others bring their own processes, one server's at a time.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.beside_kafka import servers
from bench.beside_kafka.process_cost import wait_for_rest
from bench.beside_kafka.results import Results
from bench.beside_kafka.servers import FLOOR, HEADRACE, KAFKA, Node
from bench.beside_kafka.warm_up import warm_up

STARTERS: Mapping[str, Callable[[Path], Node]] = {
    HEADRACE: servers.headrace,
    KAFKA: servers.kafka,
    FLOOR: servers.floor,
}
WARM_UP_SLICE_S = 1.0
_NO_MORE = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is sent: a share of 1 for figures that count, less while developing."""

    share: float = 1.0
    backlog_gb: float = 5.0

    def count(self, full: int) -> int:
        return max(1, int(full * self.share))

    def seconds(self, full: float) -> float:
        return max(0.2, full * self.share)


@dataclass(slots=True)
class Notebook:
    """Where a run writes its figures; each is also shown as progress."""

    results: Results
    server: str
    show: Callable[[str], None]

    def note(self, case: str, metrics: Mapping[str, float]) -> None:
        self.results.add(case, self.server, metrics)
        figures = "  ".join(f"{value:,.4g} {metric}" for metric, value in metrics.items())
        self.show(f"  {self.server:9} {case:38} {figures}")


class Family(Protocol):
    """Runs against one broker that is already warm; yields after each. Implemented by the modules of `runs`."""

    ABOUT: str
    WITH_FLOOR: bool

    def measure(self, broker: Node, notebook: Notebook, size: Size) -> Iterator[None]: ...


class Apart(Protocol):
    """Runs that start, stop and kill what they measure. Implemented by the modules of `runs`."""

    ABOUT: str

    def measure_life(
        self, server: str, directory: Path, notebook: Notebook, size: Size
    ) -> None: ...


@dataclass(slots=True, kw_only=True)
class Comparison:
    """What was chosen, and how often. A run that fails is told and left out; the others go on."""

    families: Mapping[str, Family]
    apart: Mapping[str, Apart]
    rounds: int
    size: Size
    servers: Sequence[str] = (KAFKA, HEADRACE, FLOOR)
    say: Callable[[str], None] = print
    results: Results = field(default_factory=Results)
    failures: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> Results:
        for number in range(self.rounds):
            self._show(f"round {number + 1} of {self.rounds}")
            order = list(self.servers if number % 2 == 0 else reversed(self.servers))
            if self.families:
                self._together(order)
            for name, apart in self.apart.items():
                for server in order:
                    if server != FLOOR:
                        self._apart(server, name, apart)
        return self.results

    def _show(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        self.say(f"[{minutes:02}:{seconds:02}] {text}")

    def _together(self, order: Sequence[str]) -> None:
        """One life of each server, all of them at the same time."""
        with ExitStack() as lives:
            brokers = []
            for server in order:
                directory = lives.enter_context(_directory())
                broker = STARTERS[server](Path(directory) / "broker")
                lives.callback(broker.discard)
                with self._told(server, "start and warm-up"):
                    broker.start()
                    if server != FLOOR:
                        warm_up(broker, self.size.seconds(WARM_UP_SLICE_S))
                    brokers.append(broker)
            for name, family in self.families.items():
                self._family(name, family, brokers)

    def _family(self, name: str, family: Family, brokers: Sequence[Node]) -> None:
        """Each of its runs with one broker after the other."""
        going = {
            broker: family.measure(
                broker, Notebook(self.results, broker.name, self._show), self.size
            )
            for broker in brokers
            if broker.is_running and (broker.name != FLOOR or family.WITH_FLOOR)
        }
        turn = list(going)
        while going:
            for broker in turn:
                wait_for_rest([pid for each in going if each.is_running for pid in each.pids])
                if not self._goes_on(broker, name, going[broker]):
                    del going[broker]
            turn = [broker for broker in reversed(turn) if broker in going]

    def _goes_on(self, broker: Node, name: str, runs: Iterator[None]) -> bool:
        """The next run, if there is one."""
        is_over = True
        with self._told(broker.name, name):
            is_over = next(runs, _NO_MORE) is _NO_MORE
        return not is_over

    def _apart(self, server: str, name: str, apart: Apart) -> None:
        notebook = Notebook(self.results, server, self._show)
        with _directory() as directory, self._told(server, name):
            apart.measure_life(server, Path(directory), notebook, self.size)

    @contextmanager
    def _told(self, server: str, name: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - half an hour of figures is not thrown away for one
            self.failures.append(f"{server}, {name}: {error!r}")
            self._show(f"FAILED {self.failures[-1]}")


def _directory() -> tempfile.TemporaryDirectory[str]:
    """Gone afterwards, also when a server still writes to it for a moment."""
    return tempfile.TemporaryDirectory(prefix="headrace-bench-", ignore_cleanup_errors=True)
