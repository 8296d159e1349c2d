"""A long backlog in one partition: written, read from its beginning, and opened again after kill -9."""

import time
from pathlib import Path

from bench.beside_kafka import topics
from bench.beside_kafka.cost import GB, measured
from bench.beside_kafka.payloads import payloads
from bench.beside_kafka.raw_client import call_one_by_one, pump_bytes
from bench.beside_kafka.rounds import STARTERS, Notebook, Size
from bench.beside_kafka.runs.consume import RECORD_BYTES, RECORDS_A_BATCH, read_everything
from bench.beside_kafka.servers import Node
from bench.beside_kafka.warm_up import warm_up
from bench.beside_kafka.wire_frames import produce_frame

ABOUT = "a backlog of 5 GB: write, read, recover after kill -9 (s per GB of the open segment)"

TOPIC = "backlog"
PARTS = 5  # the last part is held against the first: a longer backlog must not be a slower one
WINDOW = 5


def measure_life(server: str, directory: Path, notebook: Notebook, size: Size) -> None:
    broker = STARTERS[server](directory / "broker")
    batches = max(PARTS, int(size.backlog_gb * GB / (RECORDS_A_BATCH * RECORD_BYTES)))
    try:
        start_s = broker.start()
        warm_up(broker, size.seconds(0.5))
        topics.create(broker.port, TOPIC)
        _write(broker, notebook, batches // PARTS)
        with measured(broker.pids) as cost:
            records = read_everything(broker, TOPIC, partitions=1, batches=batches // PARTS * PARTS)
        notebook.note("backlog consume", cost.of_bytes(records * RECORD_BYTES, records))
        _recover(broker, notebook, start_s)
    finally:
        broker.discard()


def _write(broker: Node, notebook: Notebook, batches_a_part: int) -> None:
    frame = produce_frame(TOPIC, list(payloads(RECORD_BYTES)[:RECORDS_A_BATCH]))
    with measured(broker.pids) as cost:
        seconds = [
            pump_bytes(broker.port, frame, window=WINDOW, count=batches_a_part).seconds
            for _ in range(PARTS)
        ]
    written = batches_a_part * PARTS * frame.payload_bytes
    figures = {**cost.of_bytes(written), "last/first part": seconds[0] / seconds[-1]}
    notebook.note("backlog produce", figures)


def _recover(broker: Node, notebook: Notebook, start_s: float) -> None:
    """From the start command to the first record that the partition takes again; per GB, without a plain start."""
    broker.kill()
    open_segment = max((broker.data_dir / f"{TOPIC}-0").glob("*.log"))
    open_gb = open_segment.stat().st_size / GB
    began = time.perf_counter()
    broker.start()
    call_one_by_one(broker.port, produce_frame(TOPIC, [b"after"]), seconds=0)
    seconds = time.perf_counter() - began
    notebook.note("backlog recovery", {"s": seconds, "s/GB": max(0.0, seconds - start_s) / open_gb})
