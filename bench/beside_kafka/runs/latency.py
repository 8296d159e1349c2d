"""End-to-end latency at 10 % and at 50 % of the maximum, at the same rate for every server.

Safe from coordinated omission: records are due at fixed times, a millisecond apart, and a latency is counted from when a
record was due, not from when a late producer got round to sending it. The maximum is what the server that is measured
first, Kafka, passes through in a run of the family `together`; it is noted with the results.
"""

import re
import time
from collections import Counter
from collections.abc import Iterator

from bench.beside_kafka import topics
from bench.beside_kafka.cost import measured
from bench.beside_kafka.librdkafka import Messages, Producer
from bench.beside_kafka.raw_consumer import RawConsumer
from bench.beside_kafka.results import Results, latency_figures
from bench.beside_kafka.rounds import Notebook, Size
from bench.beside_kafka.runs.together import pass_through
from bench.beside_kafka.servers import Node
from bench.beside_kafka.threads import at_once

ABOUT = "end-to-end p50, p99, p99.9 at 10 % and 50 % of the maximum"
WITH_FLOOR = False

TOPIC = "latency"
MAXIMUM = ("latency maximum", "records/s")
SHARES = (10, 50)
CALIBRATION_RECORDS = 200_000
RECORD_BYTES = 1024
SECONDS = 4.0
TICK_S = 0.001
SETTLE_S = 0.5  # connections and first batches, left out of the figures
_LEAD_NS = 20_000_000
_MARK = b"\xfeDUE\xfe\xff\xfe\xff"
_DUE = re.compile(re.escape(_MARK) + b"(.{8})", re.DOTALL)
_SETTINGS = {"linger.ms": "0", "socket.nagle.disable": "true"}


def measure(broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
    rate = maximum(notebook.results)
    if rate is None:
        records = size.count(CALIBRATION_RECORDS)
        rate = records / pass_through(broker, records).seconds
        notebook.note(MAXIMUM[0], {MAXIMUM[1]: rate})
    for share in SHARES:
        with measured(broker.pids) as cost:
            latencies = end_to_end(broker, rate * share / 100, size.seconds(SECONDS))
        notebook.note(f"latency {share} %", {**figures_of(latencies), **cost.memory()})
        yield


def maximum(results: Results) -> float | None:
    """The rate found before, by whichever server came first."""
    found = results.figures.get(MAXIMUM, {})
    return next((values[0] for values in found.values()), None)


def end_to_end(broker: Node, rate: float, seconds: float) -> Counter[int]:
    """How many records took how many nanoseconds."""
    topics.create(broker.port, TOPIC)
    a_tick = max(1, round(rate * TICK_S))
    ticks = int((seconds + SETTLE_S) / TICK_S)
    messages = Messages([bytes(RECORD_BYTES)], a_tick)
    latencies: Counter[int] = Counter()
    with (
        Producer({"bootstrap.servers": broker.bootstrap, **_SETTINGS}) as producer,
        RawConsumer(broker.port, TOPIC, {0: 0}) as consumer,
    ):
        producer.send(TOPIC, messages)  # both are connected before the first record is due
        producer.flush()
        consumer.read(a_tick)
        began = time.perf_counter_ns() + _LEAD_NS
        counted_from = began + int(SETTLE_S * 1e9)

        def produce() -> None:
            for tick in range(ticks):
                due = began + int(tick * TICK_S * 1e9)
                early = due - time.perf_counter_ns()
                if early > 0:
                    time.sleep(early / 1e9)
                messages.overwrite(_MARK + due.to_bytes(8))
                producer.send(TOPIC, messages, copy=True)
            producer.flush()

        def note(batches: memoryview) -> None:
            now = time.perf_counter_ns()
            for stamp, count in Counter(_DUE.findall(batches)).items():
                due = int.from_bytes(stamp)
                if due >= counted_from:
                    latencies[now - due] += count

        def consume() -> None:
            consumer.read(a_tick * (ticks + 1), seen=note)

        at_once(produce, consume)
    topics.delete(broker.port, TOPIC)
    return latencies


def figures_of(latencies: Counter[int]) -> dict[str, float]:
    """Percentiles over all records."""
    return latency_figures(latencies.elements(), 1e-6)
