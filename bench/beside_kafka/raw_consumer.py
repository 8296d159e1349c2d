"""A consumer that reads batches and looks only at their headers, to know where to go on.

One connection, one Fetch in flight, the limits of a consumer with default settings. Like the raw producer it costs the
client little and the same whoever answers.
"""

import socket
import time
from collections.abc import Callable, Iterator
from struct import Struct
from types import TracebackType
from typing import Self

from bench.beside_kafka.wire_frames import FETCH_BYTES, FETCH_VERSION, fetch_frame
from headrace.records.batch_view import HEADER_BYTES, read_header
from headrace.wire.codec import decode
from headrace.wire.headers import response_body_offset
from headrace.wire.messages.fetch import FetchRequest, FetchResponse

TIMEOUT_S = 60.0
_LENGTH = Struct(">i")
_ROOM_BYTES = FETCH_BYTES + 2 * 1024 * 1024

Seen = Callable[[memoryview], None]


class RawConsumer:
    """Reads some partitions of a topic from their beginnings, or from given offsets."""

    def __init__(self, port: int, topic: str, offsets: dict[int, int]) -> None:
        self._topic = topic
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._room = memoryview(bytearray(_ROOM_BYTES))
        self.offsets = dict(offsets)
        self.records = 0
        self.bytes = 0

    def poll(self, seen: Seen | None = None, max_wait_ms: int = 500) -> int:
        """One Fetch. Returns how many records came; `seen` is shown the whole batches of each partition."""
        self._socket.sendall(fetch_frame(self._topic, self.offsets, max_wait_ms=max_wait_ms))
        before = self.records
        for partition, data in self._answers(self._receive()):
            whole = self._advance(partition, data)
            if seen is not None and whole:
                seen(data[:whole])
        return self.records - before

    def _advance(self, partition: int, data: memoryview) -> int:
        """Note how far the whole batches reach; an answer may end within one."""
        whole = 0
        while whole + HEADER_BYTES <= len(data):
            header = read_header(data, whole)
            if whole + header.size > len(data):
                break
            # Records before the wanted offset come along with the batch that holds it.
            following = header.base_offset + header.last_offset_delta + 1
            self.records += following - self.offsets[partition]
            self.offsets[partition] = following
            whole += header.size
        self.bytes += whole
        return whole

    def _answers(self, frame: memoryview) -> Iterator[tuple[int, memoryview]]:
        body = response_body_offset(frame, FetchRequest.API_KEY, FETCH_VERSION)
        answer = decode(FetchResponse, FETCH_VERSION, frame, body)
        if answer.error_code:
            raise RuntimeError(f"a Fetch request was refused with error code {answer.error_code}")
        for topic in answer.responses:
            for partition in topic.partitions:
                if partition.error_code:
                    raise RuntimeError(
                        f"a fetch was refused with error code {partition.error_code}"
                    )
                if partition.records:
                    yield partition.partition_index, memoryview(partition.records)

    def _receive(self) -> memoryview:
        self._receive_exactly(4, 0)
        (length,) = _LENGTH.unpack_from(self._room)
        self._receive_exactly(length, 0)
        return self._room[:length]

    def _receive_exactly(self, length: int, at: int) -> None:
        end = at + length
        while at < end:
            count = self._socket.recv_into(self._room[at:end])
            if not count:
                raise ConnectionError("the server closed the connection")
            at += count

    def read(self, records: int, *, seen: Seen | None = None, stall_s: float = 30.0) -> None:
        """Until that many records were seen; gives up when none come for a while."""
        last = time.monotonic()
        while self.records < records:
            if self.poll(seen):
                last = time.monotonic()
            elif time.monotonic() - last > stall_s:
                raise TimeoutError(f"{self.records} of {records} records came, then none")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()
