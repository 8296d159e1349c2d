"""What a test asks of any client, and the table of all clients."""

from collections.abc import Sequence
from typing import Protocol

from tests.conformance.samples import Received, Record

TIMEOUT_S = 30.0


class Refused(Exception):
    """The client reports that its request was refused; the text names the error in the client's words."""


class Client(Protocol):
    """One client library or tool."""

    @property
    def name(self) -> str: ...

    def codecs(self) -> tuple[str, ...]:
        """The compression types that this installation of the client can write and read."""
        ...

    def writable(self, record: Record) -> Record | None:
        """The record as this client can write it (a tool may lack, say, timestamps: -1), or None."""
        ...

    def produce(
        self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], *, codec: str
    ) -> None: ...

    def consume(self, bootstrap: str, topic: str, count: int) -> list[Received]:
        """Read this many records of the topic from its beginning, without a group."""
        ...

    def consume_in_group(
        self, bootstrap: str, topic: str, group: str, count: int
    ) -> list[Received]:
        """Join the group, read at least this many records, commit what was read, leave."""
        ...

    def offset_for_time(
        self, bootstrap: str, topic: str, partition: int, timestamp_ms: int
    ) -> int | None:
        """The first offset whose timestamp is at least this; None if there is none."""
        ...

    def member_command(self, bootstrap: str, topic: str, group: str) -> list[str]:
        """The command of a process that stays in a group and tells its assignment line by line."""
        ...

    def read_assignment(self, line: str, topic: str) -> frozenset[int] | None:
        """The partitions that a member has after printing this line; None when the line says nothing of it."""
        ...
