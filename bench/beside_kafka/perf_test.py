"""Kafka's own producer-perf-test: started as its script starts it, and what its last line says.

The tool warms itself up within the same run (`--warmup-records`), and its line for the steady state is the one that
counts. Nobody outside is told when that begins, so the topic is looked at until it holds the records of the warm-up: from
then on the broker is measured.
"""

import re
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.beside_kafka import topics
from bench.beside_kafka.cost import Cost, measured
from bench.beside_kafka.servers import Node, java

TIMEOUT_S = 300.0
LOOK_S = 0.02
# What kafka-producer-perf-test.sh sets.
_FLAGS = ("-Xmx512M", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20")
_SUMMARY = re.compile(
    r"(?P<records>\d+)\s+(?:steady state )?records sent, (?P<rate>[\d.,]+) records/sec \((?P<mb>[\d.,]+) MB/sec\)"
    r".*?(?P<p50>\d+) ms 50th.*?(?P<p99>\d+) ms 99th"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The tool's last line; its MB are 1,048,576 bytes."""

    records: int
    records_a_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """A run after its warm-up: what the tool says, what the broker paid, and for how many records."""

    summary: Summary
    cost: Cost
    records: int


def run(
    broker: Node, topic: str, payload_file: Path, *, records: int, settings: Mapping[str, str]
) -> Steady:
    """Send that many records, after as many to warm up."""
    given = {"bootstrap.servers": broker.bootstrap, **settings}
    command = [
        *java("org.apache.kafka.tools.ProducerPerformance", _FLAGS),
        *("--topic", topic, "--throughput", "-1", "--payload-file", str(payload_file)),
        *("--num-records", str(2 * records), "--warmup-records", str(records)),
        "--command-property",
        *(f"{name}={value}" for name, value in given.items()),
    ]
    tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        with topics.Tail(broker.port, topic) as tail:
            while (before := tail.end_offset()) < records and tool.poll() is None:
                time.sleep(LOOK_S)
        with measured(broker.pids, from_rest=False) as cost:
            printed, complaints = tool.communicate(timeout=TIMEOUT_S)
    finally:
        tool.kill()
    if tool.returncode:
        raise RuntimeError(f"producer-perf-test ended with {tool.returncode}: {complaints[-800:]}")
    return Steady(summary=summary_of(printed), cost=cost, records=2 * records - before)


def summary_of(printed: str) -> Summary:
    """The last summary in what the tool printed: that of the steady state, where it warmed up."""
    found = [match for line in printed.splitlines() if (match := _SUMMARY.search(line))]
    if not found:
        raise RuntimeError(f"producer-perf-test printed no summary: {printed[-800:]}")
    last = found[-1]
    return Summary(
        records=int(last["records"]),
        records_a_second=float(last["rate"].replace(",", "")),
        p50_ms=float(last["p50"]),
        p99_ms=float(last["p99"]),
    )
