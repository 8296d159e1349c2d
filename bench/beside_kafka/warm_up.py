"""What every broker goes through before it is measured: small requests, larger ones and reads, until it gets no faster.

A JVM that has just started interprets its bytecode and compiles what turns out to be busy; measuring it cold would
flatter everyone else. How long that takes depends on the machine, so the rate decides, not the clock.
"""

from collections.abc import Callable
from functools import partial

from bench.beside_kafka import topics
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.raw_client import pump
from bench.beside_kafka.raw_consumer import RawConsumer
from bench.beside_kafka.servers import Node
from bench.beside_kafka.wire_frames import ProduceFrame, produce_frame

TOPIC = "warm-up"
CONNECTIONS = 8
SLICES_AT_MOST = 12
FASTER = 1.05
READS = 3


def warm_up(broker: Node, slice_s: float) -> None:
    """Slices of that many seconds, as many as it takes."""
    topics.create(broker.port, TOPIC)
    pool = list(payloads(1024))
    for count in (1, 64):
        frame = produce_frame(TOPIC, pool[:count])
        until_steady(partial(_requests_a_second, broker, frame, slice_s))
    records = topics.records_in(broker.port, TOPIC) or 0
    for _ in range(READS):
        with RawConsumer(broker.port, TOPIC, {0: 0}) as consumer:
            consumer.read(records)
    topics.delete(broker.port, TOPIC)


def _requests_a_second(broker: Node, frame: ProduceFrame, seconds: float) -> float:
    done = pump(broker.port, [frame] * CONNECTIONS, window=5, seconds=seconds)
    return done.requests / done.seconds


def until_steady(rate: Callable[[], float]) -> int:
    """Measure a rate until two in a row are hardly better than the best before. Returns how often that was."""
    best, steady = rate(), 0
    for number in range(2, SLICES_AT_MOST + 1):
        latest = rate()
        steady = steady + 1 if latest < best * FASTER else 0
        best = max(best, latest)
        if steady == 2:
            return number
    return SLICES_AT_MOST
