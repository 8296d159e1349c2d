"""All families of runs by name, and one comparison of some of them."""

from collections.abc import Sequence
from pathlib import Path

from bench.beside_kafka.rounds import Apart, Comparison, Family, Size
from bench.beside_kafka.runs import (
    backlog,
    cluster,
    consume,
    latency,
    life,
    partitions,
    perf_test,
    produce,
    requests,
    together,
)
from bench.beside_kafka.servers import FLOOR, HEADRACE, KAFKA

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "benchmarks"
SERVERS = (KAFKA, HEADRACE, FLOOR)  # Kafka first: its maximum sets the rates of `latency`

FAMILIES: dict[str, Family] = {
    "produce": produce,
    "perf_test": perf_test,
    "requests": requests,
    "consume": consume,
    "together": together,
    "latency": latency,
    "partitions": partitions,
}
APART: dict[str, Apart] = {"life": life, "cluster": cluster, "backlog": backlog}


def about() -> dict[str, str]:
    """What each family is, in a line."""
    families = {name: each.ABOUT for name, each in FAMILIES.items()}
    return families | {name: each.ABOUT for name, each in APART.items()}


def comparison(
    names: Sequence[str], *, rounds: int, size: Size, servers: Sequence[str]
) -> Comparison:
    """These families, in the catalogue's order."""
    return Comparison(
        families={name: each for name, each in FAMILIES.items() if name in names},
        apart={name: each for name, each in APART.items() if name in names},
        rounds=rounds,
        size=size,
        servers=servers,
    )
