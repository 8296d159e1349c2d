"""A broker's life: start-up to the first answered request, memory while idle, memory after load."""

import time
from pathlib import Path

from bench.beside_kafka.cost import MB, MEMORY, RESIDENT
from bench.beside_kafka.librdkafka import Messages
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.process_cost import memory
from bench.beside_kafka.rounds import STARTERS, Notebook, Size
from bench.beside_kafka.runs.consume import fill, read_everything
from bench.beside_kafka.runs.produce import produce
from bench.beside_kafka.servers import Node
from bench.beside_kafka.warm_up import warm_up

ABOUT = "start-up, idle memory, memory after load"

IDLE_S = 3.0
LOAD_RECORDS = 600_000
TOPIC = "life"


def measure_life(server: str, directory: Path, notebook: Notebook, size: Size) -> None:
    broker = STARTERS[server](directory / "broker")
    try:
        notebook.note("life first start", {"s": broker.start()})
        broker.stop()
        notebook.note("life start", {"s": broker.start()})
        time.sleep(IDLE_S)
        notebook.note("life idle", _memory(broker))
        _load(broker, size)
        notebook.note("life after load", _memory(broker))
        began = time.perf_counter()
        broker.stop()
        notebook.note("life stop", {"s": time.perf_counter() - began})
    finally:
        broker.discard()


def _memory(broker: Node) -> dict[str, float]:
    found = memory(broker.pids[0])
    return {MEMORY: found.anonymous_bytes / MB, RESIDENT: found.resident_bytes / MB}


def _load(broker: Node, size: Size) -> None:
    """Small requests, large ones, and reading: what a broker does in a busy minute."""
    warm_up(broker, size.seconds(0.3))
    messages = Messages(payloads(1024), 10_000)
    produce(broker, messages, size.count(LOAD_RECORDS), {})
    fill(broker, TOPIC, batches=size.count(2_000), partitions=1)
    read_everything(broker, TOPIC, partitions=1, batches=size.count(2_000))
