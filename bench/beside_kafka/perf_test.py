"""Kafka's own producer-perf-test: started as its script starts it, and what its last line says.

The tool warms itself up within the same run (`--warmup-records`), and its line for the steady state is the one that
counts. Only the broker's CPU of that part would be wanted too, but nobody outside can tell when it begins, so CPU and
memory cover the whole run and are divided by all of its bytes.
"""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.beside_kafka.servers import java

TIMEOUT_S = 300.0
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


def run(
    bootstrap: str, topic: str, payload_file: Path, *, records: int, settings: Mapping[str, str]
) -> Summary:
    """Send so many records after half as many to warm up."""
    warm_up = records // 2
    given = {"bootstrap.servers": bootstrap, **settings}
    command = [
        *java("org.apache.kafka.tools.ProducerPerformance", _FLAGS),
        *("--topic", topic, "--throughput", "-1", "--payload-file", str(payload_file)),
        *("--num-records", str(records + warm_up), "--warmup-records", str(warm_up)),
        "--command-property",
        *(f"{name}={value}" for name, value in given.items()),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"producer-perf-test ended with {done.returncode}: {done.stderr[-800:]}")
    return summary_of(done.stdout)


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
