"""Time, broker CPU and broker memory of one measured block, as the figures that a run notes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.beside_kafka.process_cost import Meter, wait_for_rest

GB = 1e9
MB = 1e6
CPU_PER_GB = "broker CPU s/GB"
CPU_PER_REQUEST = "broker CPU µs/request"
MEMORY = "memory MB"  # anonymous: what is compared
RESIDENT = "resident MB"


class Cost:
    """What a block took. Complete when the block has ended."""

    def __init__(self, pids: Sequence[int]) -> None:
        self.seconds = 0.0
        self.meter = Meter(pids)

    def of_bytes(self, payload_bytes: float, records: float | None = None) -> dict[str, float]:
        """Figures of a block that moved so many bytes of records."""
        found = {"MB/s": payload_bytes / MB / self.seconds}
        if records is not None:
            found["records/s"] = records / self.seconds
        return {**found, CPU_PER_GB: self.meter.cpu_s / (payload_bytes / GB), **self.memory()}

    def of_requests(self, requests: int) -> dict[str, float]:
        """Figures of a block that had so many requests answered."""
        return {
            "requests/s": requests / self.seconds,
            CPU_PER_REQUEST: self.meter.cpu_s / requests * 1e6,
            **self.memory(),
        }

    def memory(self) -> dict[str, float]:
        return {
            MEMORY: self.meter.peak_anonymous_bytes / MB,
            RESIDENT: self.meter.peak_resident_bytes / MB,
        }


@contextmanager
def measured(pids: Sequence[int], *, from_rest: bool = True) -> Iterator[Cost]:
    """Measure a block; the time is also that of the block. It begins when the broker has nothing else to do, or at once."""
    if from_rest:
        wait_for_rest(pids)
    cost = Cost(pids)
    with cost.meter:
        began = time.perf_counter()
        yield cost
        cost.seconds = time.perf_counter() - began
