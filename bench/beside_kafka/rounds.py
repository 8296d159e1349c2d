"""The order of a comparison: rounds, in each one server after the other, each started fresh, warmed up and measured.

The server that goes first changes from round to round, and never do two run at once. A family of runs says what it
measures; this module says when. Families of a single broker share one life of it in a round; the others bring their own
processes.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.beside_kafka import servers
from bench.beside_kafka.results import Results
from bench.beside_kafka.servers import FLOOR, HEADRACE, KAFKA, Node
from bench.beside_kafka.warm_up import warm_up

STARTERS: Mapping[str, Callable[[Path], Node]] = {
    HEADRACE: servers.headrace,
    KAFKA: servers.kafka,
    FLOOR: servers.floor,
}
WARM_UP_SLICE_S = 1.0


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
    """Runs against one broker that is already warm. Implemented by the modules of `runs`."""

    ABOUT: str
    WITH_FLOOR: bool

    def measure(self, broker: Node, notebook: Notebook, size: Size) -> None: ...


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
    fill_memory: Callable[[], int] = lambda: 0  # before a broker is started, see `page_cache`
    say: Callable[[str], None] = print
    results: Results = field(default_factory=Results)
    failures: list[str] = field(default_factory=list)
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> Results:
        for number in range(self.rounds):
            order = self.servers if number % 2 == 0 else tuple(reversed(self.servers))
            for server in order:
                self._show(f"round {number + 1} of {self.rounds}: {server}")
                self._round(server)
        return self.results

    def _show(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        self.say(f"[{minutes:02}:{seconds:02}] {text}")

    def _round(self, server: str) -> None:
        notebook = Notebook(self.results, server, self._show)
        families = {
            name: family
            for name, family in self.families.items()
            if server != FLOOR or family.WITH_FLOOR
        }
        if families:
            self._fill()
            with _directory() as directory:
                self._one_life(families, STARTERS[server](Path(directory) / "broker"), notebook)
        for name, apart in self.apart.items() if server != FLOOR else ():
            self._fill()
            with _directory() as directory, self._told(server, name):
                apart.measure_life(server, Path(directory), notebook, self.size)

    def _fill(self) -> None:
        if filled_bytes := self.fill_memory():
            self._show(f"  memory filled: {filled_bytes / 1e9:.1f} GB of page cache")

    def _one_life(self, families: Mapping[str, Family], broker: Node, notebook: Notebook) -> None:
        try:
            with self._told(broker.name, "start and warm-up"):
                broker.start()
                if broker.name != FLOOR:
                    warm_up(broker, self.size.seconds(WARM_UP_SLICE_S))
            for name, family in families.items():
                if broker.is_running:
                    with self._told(broker.name, name):
                        family.measure(broker, notebook, self.size)
        finally:
            broker.discard()

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
