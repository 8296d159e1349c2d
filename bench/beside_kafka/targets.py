"""The targets: which figures have to be how good, as Headrace/Kafka. Pure.

A target is met by a case if the ratio of the medians, in two digits, reaches it. Where several cases answer to one
target, each is judged by itself.
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from bench.beside_kafka.cost import CPU_PER_GB, MEMORY
from bench.beside_kafka.results import Ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One demand on all cases that fit a pattern."""

    row: str
    cases: str
    metric: str
    at_least: float | None = None
    at_most: float | None = None

    def covers(self, case: str, metric: str) -> bool:
        return metric == self.metric and fnmatchcase(case, self.cases)

    def is_met(self, ratio: Ratio) -> bool:
        shown = round(ratio.value, 2)
        return (self.at_least is None or shown >= self.at_least) and (
            self.at_most is None or shown <= self.at_most
        )

    @property
    def text(self) -> str:
        return f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"


def _throughput(row: str, cases: str, at_least: float, metric: str = "MB/s") -> Target:
    return Target(row=row, cases=cases, metric=metric, at_least=at_least)


def _cost(row: str, cases: str, metric: str, at_most: float) -> Target:
    return Target(row=row, cases=cases, metric=metric, at_most=at_most)


TARGETS = (
    _throughput("produce throughput", "produce *", 1.0),
    _cost("broker CPU per GB produced, 100 B", "produce * 100 B *", CPU_PER_GB, 0.5),
    _cost("broker CPU per GB produced, 1 KiB", "produce * 1 KiB *", CPU_PER_GB, 0.25),
    _cost("broker CPU per GB produced, 10 KiB", "produce * 10 KiB *", CPU_PER_GB, 0.25),
    _throughput(
        "one record per request, one connection", "requests 1 connection*", 4, "requests/s"
    ),
    _throughput(
        "one record per request, 16 connections", "requests 16 connections", 1.5, "requests/s"
    ),
    _cost("synchronous produce p50", "requests synchronous*", "p50 ms", 0.6),
    _cost("synchronous produce p99", "requests synchronous*", "p99 ms", 1.0),
    _throughput("consume throughput", "consume *", 1.0),
    _cost("consume: broker CPU per GB", "consume *", CPU_PER_GB, 1.2),
    _cost("end to end p50 at half load", "latency 50 %", "p50 ms", 0.7),
    _cost("end to end p99 at half load", "latency 50 %", "p99 ms", 1.0),
    _throughput("3 brokers, RF 3, acks all: throughput", "cluster produce*", 1.0),
    _cost("3 brokers, RF 3, acks all: CPU", "cluster produce*", CPU_PER_GB, 0.5),
    _throughput("1,000 partitions: throughput", "partitions 1000", 1.0),
    _cost("start-up", "life start", "s", 0.2),
    _cost("idle memory", "life idle", MEMORY, 0.2),
    _cost("memory after load", "life after load", MEMORY, 0.2),
    _cost("failover after kill -9", "cluster failover", "s", 1.0),
    _cost("controlled restart", "cluster controlled restart", "s", 1.0),
)


def target_of(case: str, metric: str) -> Target | None:
    return next((target for target in TARGETS if target.covers(case, metric)), None)
