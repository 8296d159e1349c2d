"""A well-behaved client that works while others misbehave: it produces, fetches what it produced, and compares.

It never connects again: losing a connection is a failure, because only an offender may lose one.
"""

import threading
import time
from types import TracebackType
from typing import Self

from headrace.client.connection import Connection
from tests.robustness.wire_calls import create_topic, fetch, produce

RECORDS_A_ROUND = 5
PAUSE_S = 0.005


class Bystander:
    """Runs in a thread of its own while a block runs; a failure surfaces at the block's end."""

    def __init__(self, port: int, topic: str, *, timeout_s: float = 60.0) -> None:
        self._writer = Connection("127.0.0.1", port, timeout_s=timeout_s)
        self._reader = Connection("127.0.0.1", port, timeout_s=timeout_s)
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: Exception | None = None
        self._next_offset = 0
        self.rounds = 0
        self.slowest_round_s = 0.0
        create_topic(self._writer, topic)

    def _run(self) -> None:
        try:
            while not self._stop.wait(PAUSE_S):
                began = time.monotonic()
                self._round()
                self.slowest_round_s = max(self.slowest_round_s, time.monotonic() - began)
                self.rounds += 1
        except Exception as failure:  # noqa: BLE001 (raised again where the block ends)
            self._failure = failure

    def _round(self) -> None:
        values = [b"%d-%d" % (self.rounds, number) for number in range(RECORDS_A_ROUND)]
        offset = produce(self._writer, self._topic, values)
        assert offset == self._next_offset, f"written at {offset}, not at {self._next_offset}"
        found = fetch(self._reader, self._topic, offset)
        assert found == values, f"wrote {values!r} at {offset} and read {found!r}"
        self._next_offset += len(values)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._writer.close()
        self._reader.close()
        if self._failure is not None:
            raise AssertionError(
                f"the bystander failed after {self.rounds} rounds"
            ) from self._failure
