"""An impatient client of one partition: a record with acks=all every few milliseconds, to whoever leads now.

Its longest time without an acknowledged record is how long a failure was felt. It asks every broker that it can reach
for the leader, and waits for nothing but the answers, so that no client's back-off is in the figure.
"""

import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from types import TracebackType
from typing import Self

from bench.beside_kafka.topics import partitions_of
from bench.beside_kafka.wire_frames import PRODUCE_VERSION, batch_of
from headrace.client.connection import Connection
from headrace.client.exchange import Disconnected
from headrace.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PAUSE_S = 0.005
TIMEOUT_S = 3.0


class Prober:
    """Runs in a thread of its own from entry to exit."""

    def __init__(self, ports: Mapping[int, int], topic: str) -> None:
        self._ports = dict(ports)
        self._topic = topic
        self._connections: dict[int, Connection] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.acknowledged: list[float] = []
        self.leaders: list[int] = []

    def _run(self) -> None:
        leader: int | None = None
        while not self._stop.is_set():
            if leader is None:
                leader = self._ask_for_leader()
            if leader is not None:
                if self._produce(leader):
                    self.acknowledged.append(time.monotonic())
                    self.leaders.append(leader)
                else:
                    leader = None
            time.sleep(PAUSE_S)
        for connection in self._connections.values():
            connection.close()

    def _connection(self, broker: int) -> Connection:
        found = self._connections.get(broker)
        if found is None:
            found = self._connections[broker] = Connection(
                "127.0.0.1", self._ports[broker], timeout_s=TIMEOUT_S
            )
        return found

    def _ask_for_leader(self) -> int | None:
        """The first answer that names one who is not known to be away."""
        for broker in self._ports:
            try:
                found = partitions_of(self._connection(broker), self._topic)
            except Disconnected:
                self._connections.pop(broker, None)
                continue
            if found and found[0].leader_id in self._ports:
                return found[0].leader_id
        return None

    def _produce(self, leader: int) -> bool:
        data = PartitionProduceData(index=0, records=batch_of([b"probe"]))
        request = ProduceRequest(
            acks=-1,
            timeout_ms=int(TIMEOUT_S * 1000),
            topic_data=[TopicProduceData(name=self._topic, partition_data=[data])],
        )
        try:
            answer = self._connection(leader).send(request, PRODUCE_VERSION)
        except Disconnected:
            self._connections.pop(leader, None)
            return False
        return not answer.responses[0].partition_responses[0].error_code

    def wait_for(self, count: int, timeout_s: float, *, other_than: int | None = None) -> None:
        """Until that many more records were acknowledged, by someone else than a broker if so wished."""
        start, deadline = len(self.leaders), time.monotonic() + timeout_s
        while sum(leader != other_than for leader in self.leaders[start:]) < count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._topic}: nobody takes records")
            time.sleep(PAUSE_S)

    @property
    def leader(self) -> int:
        """Who took the latest record."""
        return self.leaders[-1]

    def longest_gap_s(self, since: float) -> float:
        """Between one acknowledged record and the next, of those that ended after this moment."""
        times = self.acknowledged
        return max(later - earlier for earlier, later in pairwise(times) if later >= since)

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
