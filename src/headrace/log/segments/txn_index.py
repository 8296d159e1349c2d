"""`.txnindex`: the aborted transactions whose markers lie in a segment, ordered by the marker's offset.

Entry, 34 bytes big endian: i16 version 0; i64 producer id; i64 first offset; i64 last offset (the marker's);
i64 last stable offset when the marker was written. The file exists only if something was aborted.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from headrace.errors import DiskFull
from headrace.log.files.disk import Disk, File

_ENTRY: Final = Struct(">hqqqq")
ENTRY_BYTES: Final = _ENTRY.size
_ENTRIES_PER_READ: Final = 256


class AbortedTxn(NamedTuple):
    """A transaction that ended with an abort marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """The aborted transactions of one segment."""

    __slots__ = ("_disk", "_file", "_path", "_unwritten")

    def __init__(self, disk: Disk, path: str, size: int | None) -> None:
        self._disk = disk
        self._path = path
        self._file = None if size is None else disk.open(path, size)
        self._unwritten: list[AbortedTxn] = []

    def append(self, aborted: AbortedTxn) -> None:
        """Add a transaction; markers arrive in the order of their offsets."""
        self._unwritten.append(aborted)
        try:
            self.flush()
        except DiskFull:
            pass  # the marker already stands in the log: its entry stays in memory until there is space

    def flush(self) -> None:
        """Write what is only in memory."""
        if self._unwritten:
            if self._file is None:
                self._file = self._disk.create(self._path)
            self._file.append(b"".join(_ENTRY.pack(0, *aborted) for aborted in self._unwritten))
            self._unwritten.clear()

    def __iter__(self) -> Iterator[AbortedTxn]:
        yield from self._written()
        yield from self._unwritten

    @property
    def is_empty(self) -> bool:
        return not self._count and not self._unwritten

    def ended_from(self, offset: int) -> Iterator[AbortedTxn]:
        """The transactions whose marker stands at `offset` or later. Reads no more of the file than is asked for."""
        yield from self._written(self._first_ended_from(offset))
        for aborted in self._unwritten:
            if aborted.last_offset >= offset:
                yield aborted

    def _first_ended_from(self, offset: int) -> int:
        return bisect_left(range(self._count), offset, key=lambda n: self._entry(n).last_offset)

    def _entry(self, number: int) -> AbortedTxn:
        assert self._file is not None
        _, *fields = _ENTRY.unpack(self._file.read(number * ENTRY_BYTES, ENTRY_BYTES))
        return AbortedTxn(*fields)

    @property
    def _count(self) -> int:
        return (
            0 if self._file is None else self._file.size // ENTRY_BYTES
        )  # a torn tail is no entry

    def _written(self, first: int = 0) -> Iterator[AbortedTxn]:
        for begin in range(first, self._count, _ENTRIES_PER_READ):
            assert self._file is not None
            count = min(_ENTRIES_PER_READ, self._count - begin)
            content = self._file.read(begin * ENTRY_BYTES, count * ENTRY_BYTES)
            for _, *fields in _ENTRY.iter_unpack(content):
                yield AbortedTxn(*fields)

    def truncate(self, offset: int) -> None:
        """Forget markers at or after `offset`."""
        if self._file is not None:
            keep = sum(1 for aborted in self._written() if aborted.last_offset < offset)
            self._file.truncate(keep * ENTRY_BYTES)
        self._unwritten = [aborted for aborted in self._unwritten if aborted.last_offset < offset]

    @property
    def path(self) -> str:
        """Where the file is, or would be created."""
        return self._path

    def renamed(self, path: str) -> None:
        """Tell the index that its segment has a new name, also while it has no file."""
        self._path = path

    @property
    def file(self) -> File | None:
        """The file if there is one, for syncing, renaming and removal."""
        return self._file


def aborted_between(
    indexes: Iterable[TxnIndex], start_offset: int, end_offset: int
) -> list[AbortedTxn]:
    """The aborted transactions that overlap a range; `indexes` are those from its start on, in order."""
    aborted: list[AbortedTxn] = []
    for index in indexes:
        for txn in index.ended_from(start_offset):
            if txn.first_offset < end_offset:
                aborted.append(txn)
            if txn.last_stable_offset >= end_offset:
                return aborted
    return aborted
