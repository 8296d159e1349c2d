"""Figures of all rounds, and what they come to: medians, spreads and ratios. Pure.

A figure has the key (case, metric) and one value or two for each server and round. Runs are interleaved, so the ratio of two
values compares neighbours in time; the spread of a ratio is the smallest and largest of those.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.beside_kafka.servers import HEADRACE, KAFKA


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Headrace/Kafka: of the medians, and the extremes of the rounds."""

    value: float
    lowest: float
    highest: float


@dataclass(slots=True)
class Results:
    """What was measured so far."""

    figures: dict[tuple[str, str], dict[str, list[float]]] = field(default_factory=dict)

    def add(self, case: str, server: str, metrics: Mapping[str, float]) -> None:
        for metric, value in metrics.items():
            self.figures.setdefault((case, metric), {}).setdefault(server, []).append(value)

    def cases_and_metrics(self) -> Iterator[tuple[str, str]]:
        """In the order in which they were first measured, a case's metrics together."""
        order = {
            case: index for index, case in enumerate(dict.fromkeys(c for c, _ in self.figures))
        }
        return iter(sorted(self.figures, key=lambda key: order[key[0]]))

    def median(self, case: str, metric: str, server: str) -> float | None:
        values = self.figures.get((case, metric), {}).get(server)
        return median(values) if values else None

    def ratio(self, case: str, metric: str) -> Ratio | None:
        """None while one of the two was not measured, or Kafka's figure is nought."""
        ours, theirs = (self.figures.get((case, metric), {}).get(s) for s in (HEADRACE, KAFKA))
        if not ours or not theirs or not median(theirs):
            return None
        pairs = [a / b for a, b in zip(ours, theirs, strict=False) if b]
        value = median(ours) / median(theirs)
        return Ratio(
            value=value, lowest=min(pairs, default=value), highest=max(pairs, default=value)
        )


def latency_figures(times: Iterable[float], milliseconds: float) -> dict[str, float]:
    """The percentiles that are told of times, given in units of so many milliseconds."""
    ascending = sorted(times)
    shares = {"p50 ms": 0.50, "p99 ms": 0.99, "p99.9 ms": 0.999}
    return {name: percentile(ascending, share) * milliseconds for name, share in shares.items()}


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all does not exceed. `values` is sorted."""
    if not values:
        raise ValueError("no values")
    return values[min(len(values) - 1, max(0, int(len(values) * share + 0.999999) - 1))]
