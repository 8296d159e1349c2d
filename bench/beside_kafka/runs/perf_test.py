"""Produce with Kafka's own producer and its tool: three sizes with acks all, and 1 KiB with acks 1 and with each codec."""

from collections.abc import Iterator
from pathlib import Path

from bench.beside_kafka import topics
from bench.beside_kafka.cost import CPU_PER_GB, GB, MB
from bench.beside_kafka.payloads import write_lines
from bench.beside_kafka.perf_test import run
from bench.beside_kafka.process_cost import wait_for_rest
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.runs.produce import SIZE_NAMES
from bench.beside_kafka.servers import FLOOR, Node

ABOUT = "Kafka's producer-perf-test: 100 B, 1 KiB, 10 KiB; acks 1 and all; none, lz4, zstd"
WITH_FLOOR = True

TOPIC = "perf-test"
RECORDS = {100: 600_000, 1024: 120_000, 10_240: 15_000}
CASES = (
    (100, "none", "all"),
    (1024, "none", "1"),
    (1024, "none", "all"),
    (1024, "lz4", "all"),
    (1024, "zstd", "all"),
    (10_240, "none", "all"),
)


def measure(broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
    for record_bytes, codec, acks in CASES:
        if broker.name == FLOOR and (codec, acks) != ("none", "all"):
            continue  # to the floor they are all the same
        lines = broker.directory / f"payloads-{record_bytes}"
        write_lines(lines, record_bytes)
        figures = _produce(
            broker, lines, record_bytes, size, {"compression.type": codec, "acks": acks}
        )
        notebook.note(f"produce perf-test {SIZE_NAMES[record_bytes]} {codec} acks={acks}", figures)
        yield


def _produce(
    broker: Node, lines: Path, record_bytes: int, size: Size, settings: dict[str, str]
) -> dict[str, float]:
    topics.create(broker.port, TOPIC)
    records = size.count(RECORDS[record_bytes])
    wait_for_rest(broker.pids)
    steady = run(broker, TOPIC, lines, records=records, settings=settings)
    topics.insist_on(broker.port, TOPIC, 2 * records)
    topics.delete(broker.port, TOPIC)
    return {
        "MB/s": steady.summary.records_a_second * record_bytes / MB,
        "records/s": steady.summary.records_a_second,
        CPU_PER_GB: steady.cost.meter.cpu_s / (steady.records * record_bytes / GB),
        **steady.cost.memory(),
    }
