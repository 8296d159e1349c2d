"""What a consumer instance has read: records that no client has got yet, and offsets behind those that one has. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from headrace.ids import TopicPartition


class ReadRecord(NamedTuple):
    """A record as it was read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def size(self) -> int:
        """The bytes that count for the limits of a read."""
        return len(self.key or b"") + len(self.value or b"")

    @property
    def place(self) -> TopicPartition:
        """Its partition."""
        return TopicPartition(self.topic, self.partition)


class Progress:
    """Records are put back where a client went away, or where they did not fit into an answer."""

    def __init__(self) -> None:
        self._undelivered: deque[ReadRecord] = deque()
        self._delivered: dict[TopicPartition, int] = {}

    @property
    def undelivered_bytes(self) -> int:
        """Memory of the records that no client has got yet."""
        return sum(each.size for each in self._undelivered)

    @property
    def delivered(self) -> Mapping[TopicPartition, int]:
        """The offset behind the last record that a client has got, by partition."""
        return self._delivered

    def next_undelivered(self) -> ReadRecord | None:
        """The next record that was read before."""
        return self._undelivered.popleft() if self._undelivered else None

    def keep(self, record: ReadRecord) -> None:
        """A record behind all others that no client has got yet."""
        self._undelivered.append(record)

    def put_back(self, records: Iterable[ReadRecord]) -> None:
        """Records that no client has got, in their order; the next read begins with them."""
        self._undelivered.extendleft(reversed(list(records)))

    def deliver(self, records: Iterable[ReadRecord]) -> None:
        """A client has got these."""
        for record in records:
            self._delivered[record.place] = record.offset + 1

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Reading goes on elsewhere in these partitions."""
        gone = set(partitions)
        for partition in gone:
            self._delivered.pop(partition, None)
        self._undelivered = deque(each for each in self._undelivered if each.place not in gone)

    def keep_only(self, position_of: Callable[[TopicPartition], int | None]) -> None:
        """Forget partitions that are not read any more, or are read anew, by the consumer's own position in each.

        The position is the offset behind the last record that the consumer gave; None where it has given none since it
        was assigned the partition. A partition that was taken away and came back starts at the committed offset, so
        what was read of it before does not count.
        """
        behind: dict[TopicPartition, int] = dict(self._delivered)
        for record in self._undelivered:
            behind[record.place] = record.offset + 1
        stale = []
        for partition, expected in behind.items():
            position = position_of(partition)
            if position is None or position < expected:
                stale.append(partition)
        self.forget(stale)
