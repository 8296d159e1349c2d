"""One segment: a `.log` file of whole batches with its three indexes.

Not shared: the partition log that owns it is the only caller. Positions are bytes from the start of the `.log` file.
Files are opened on first use, so that a log of thousands of sealed segments opens in no time.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Final, NamedTuple
from zlib import crc32

from headrace.errors import CorruptBatch, DiskFailed
from headrace.log.files.disk import Disk, File
from headrace.log.files.file_slice import FileSlice
from headrace.log.log_config import LogConfig
from headrace.log.segments.offset_index import OffsetIndex
from headrace.log.segments.time_index import TimeIndex, TimestampOffset
from headrace.log.segments.txn_index import TxnIndex
from headrace.records.batch_view import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    read_header,
    read_offset_and_size,
)

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TXN_INDEX_SUFFIX: Final = ".txnindex"
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

# A batch that was looked up by the index is mostly the first, or near: the first read need not be long.
_FIRST_SCAN_BYTES: Final = 8 * 1024
_SCAN_BYTES: Final = 64 * 1024
_MAX_RELATIVE_OFFSET: Final = 2**31 - 1
_max_timestamp_of: Final = attrgetter("max_timestamp")


class FoundBatch(NamedTuple):
    """A batch and where it lies."""

    position: int
    header: BatchHeader


class SegmentSizes(NamedTuple):
    """Sizes of a segment's files as found in the directory; None where a file is missing."""

    log: int = 0
    offset_index: int | None = 0
    time_index: int | None = 0
    txn_index: int | None = None


def offset_name(offset: int) -> str:
    """The name of a segment's files, without suffix."""
    return f"{offset:020d}"


def batches_in(file: File, position: int = 0) -> Iterator[FoundBatch]:
    """Headers of all batches of a `.log` file from `position` on. CorruptBatch if it does not hold whole batches."""
    size = file.size
    window_bytes = _FIRST_SCAN_BYTES
    while position < size:
        window = file.read(position, window_bytes)
        window_bytes = _SCAN_BYTES
        at = 0
        while at + HEADER_BYTES <= len(window):
            header = read_header(window, at)
            if header.length < HEADER_BYTES - LOG_OVERHEAD or position + at + header.size > size:
                raise CorruptBatch(f"{file.path}: no whole batch at {position + at}")
            yield FoundBatch(position + at, header)
            at += header.size
        if at == 0:
            raise CorruptBatch(f"{file.path}: {size - position} bytes at {position}")
        position += at


class Segment:
    """A `.log` file and its indexes, from `base_offset` on."""

    __slots__ = (
        "_bytes_since_index",
        "_disk",
        "_first_timestamp",
        "_free_entries",
        "_max_timestamp",
        "_next_read",
        "base_offset",
        "config",
        "created_ms",
        "log",
        "offset_index",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        disk: Disk,
        path: str,
        base_offset: int,
        config: LogConfig,
        *,
        sizes: SegmentSizes,
        created_ms: int,
        stage: str = "",
    ) -> None:
        """`path` is the directory with the segment's name, without a suffix; `stage` stands behind the suffixes."""
        self._disk = disk
        self.config = config
        self.base_offset = base_offset
        self.created_ms = created_ms
        self.log: File = disk.open(path + LOG_SUFFIX + stage, sizes.log)
        self.offset_index = OffsetIndex(
            disk.open(path + INDEX_SUFFIX + stage, sizes.offset_index or 0),
            base_offset,
            config.segment_index_bytes,
        )
        self.time_index = TimeIndex(
            disk.open(path + TIME_INDEX_SUFFIX + stage, sizes.time_index or 0),
            base_offset,
            config.segment_index_bytes,
        )
        self.txn_index = TxnIndex(disk, path + TXN_INDEX_SUFFIX + stage, sizes.txn_index)
        self._bytes_since_index = 0
        self._max_timestamp: TimestampOffset | None = None
        self._first_timestamp: int | None = None
        # Base offset and position of the batch behind the latest read: mostly, the next one starts there.
        self._next_read: tuple[int, int] | None = None
        self._free_entries: int | None = (
            None  # of the indexes: unknown until asked, and after each entry
        )

    @classmethod
    def create(
        cls,
        disk: Disk,
        path: str,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        stage: str = "",
    ) -> "Segment":
        """A new, empty segment, its files in place: all of them, or none if the disk refuses one."""
        suffixes = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        try:
            for suffix in suffixes:
                disk.create(path + suffix + stage)
        except DiskFailed:
            for suffix in suffixes:
                with suppress(DiskFailed):  # opening the log again tells what is left over
                    disk.remove(path + suffix + stage)
            raise
        sizes = SegmentSizes()
        return cls(disk, path, base_offset, config, sizes=sizes, created_ms=now_ms, stage=stage)

    @property
    def size(self) -> int:
        """Bytes in the `.log` file."""
        return self.log.size

    @property
    def max_timestamp(self) -> TimestampOffset:
        """Largest timestamp and the last offset of the batch that reached it first; (-1, base) if none."""
        if self._max_timestamp is None:
            self._max_timestamp = self.time_index.last
        return self._max_timestamp

    @property
    def newest_ms(self) -> int:
        """The time of the newest record: the largest timestamp, or when the file was written to last if there is none."""
        newest = self.max_timestamp.timestamp
        return self.log.modified_ms if newest == NO_TIMESTAMP else newest

    # ---- writing

    def append(
        self, batches: Sequence[bytearray | memoryview], headers: Sequence[BatchHeader]
    ) -> None:
        """Write stamped batches, all or none: the file is unchanged if that fails."""
        if self._max_timestamp is None:
            self._max_timestamp = self.time_index.last  # what must be read is, before the write
        position = self.log.size
        self.log.append(*batches)
        if len(headers) == 1:
            self.note_appended(position, headers[0])
            return
        bytes_since_index = self._bytes_since_index + self.log.size - position
        if (
            bytes_since_index <= self.config.index_interval_bytes
            and self._first_timestamp is not None
        ):
            # No entry is due: all that is left to note is the largest timestamp, where it was reached first.
            self.note_appended(position, max(headers, key=_max_timestamp_of))
            self._bytes_since_index = bytes_since_index
            return
        for header in headers:
            self.note_appended(position, header)
            position += header.length + LOG_OVERHEAD

    def note_appended(self, position: int, header: BatchHeader) -> None:
        """Bring the indexes up to date with a batch that stands at `position`."""
        newest = self._max_timestamp or self.max_timestamp
        timestamp = header.max_timestamp
        if timestamp > newest.timestamp:
            newest = self._max_timestamp = TimestampOffset(timestamp, header.last_offset)
        if self._first_timestamp is None and timestamp > NO_TIMESTAMP:
            self._first_timestamp = timestamp
        if self._bytes_since_index > self.config.index_interval_bytes:
            self.offset_index.append(header.last_offset, position)
            self.time_index.append_if_later(*newest)
            self._bytes_since_index = 0
            self._free_entries = None
        self._bytes_since_index += header.length + LOG_OVERHEAD

    def should_roll(
        self, last_offset: int, size: int, max_timestamp: int, now_ms: int, *, batches: int = 1
    ) -> bool:
        """Whether `batches` with this last offset and so many bytes in all belong into a new segment."""
        if last_offset - self.base_offset > _MAX_RELATIVE_OFFSET:
            return True
        config, present = self.config, self.log.size
        return present > 0 and (
            present > config.segment_bytes - size
            or (
                (waited_ms := self._waited_ms(now_ms, max_timestamp)) > config.min_segment_ms
                and waited_ms > self._longest_ms(config)
            )
            or self._has_full_index(batches)
        )

    def _has_full_index(self, batches: int) -> bool:
        if self._free_entries is None:
            self._free_entries = min(self.offset_index.free_entries, self.time_index.free_entries)
        return self._free_entries < batches

    def _longest_ms(self, config: LogConfig) -> int:
        jitter_ms = config.max_segment_ms - config.min_segment_ms
        if jitter_ms == 0:
            return config.max_segment_ms
        # Any number will do that differs from segment to segment; this one needs no source of chance.
        return config.max_segment_ms - crc32(self.log.path.encode()) % jitter_ms

    def _waited_ms(self, now_ms: int, batch_timestamp: int) -> int:
        # Segments are rolled by the records' own time where there is one, so that replaying history rolls alike.
        first = self._first_timestamp
        if first is None:
            first = self.first_timestamp
        if first is not None and batch_timestamp > NO_TIMESTAMP:
            return batch_timestamp - first
        return now_ms - self.created_ms

    @property
    def first_timestamp(self) -> int | None:
        """Largest timestamp of the first batch, the base of rolling by time; None without one."""
        if self._first_timestamp is None and self.size >= HEADER_BYTES:
            timestamp = read_header(self.log.read(0, HEADER_BYTES)).max_timestamp
            self._first_timestamp = timestamp if timestamp > NO_TIMESTAMP else None
        return self._first_timestamp

    def seal(self) -> None:
        """Nothing will be appended for now: complete the time index and write what is in memory."""
        self.time_index.append_if_later(*self.max_timestamp)
        self._free_entries = None
        self.write_indexes()
        self.log.truncate(self.log.size)  # room that was taken ahead is free again

    def write_indexes(self) -> None:
        """Write index entries that are only in memory."""
        self.offset_index.flush()
        self.time_index.flush()
        self.txn_index.flush()

    def truncate(self, position: int, offset: int) -> None:
        """Cut the file at `position`, where the batch starts that holds or follows `offset`."""
        self.offset_index.truncate(offset, position)
        self.time_index.truncate(offset)
        self.txn_index.truncate(offset)
        self.log.truncate(position)
        self._next_read = None
        self._bytes_since_index = 0
        self._free_entries = None
        if position == 0:
            self._first_timestamp = None
        # The time index names batches up to its last entry only; those behind it are looked at again.
        self._max_timestamp = self.time_index.last
        for found in self.batches(self.position_of(self.time_index.last.offset) or 0):
            if found.header.max_timestamp > self.max_timestamp.timestamp:
                self._max_timestamp = TimestampOffset(
                    found.header.max_timestamp, found.header.last_offset
                )

    def forget_indexes(self) -> None:
        """Empty offset and time index before they are rebuilt by `note_appended`."""
        self.offset_index.clear()
        self.time_index.clear()
        self._bytes_since_index = 0
        self._free_entries = None
        self._max_timestamp = TimestampOffset(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None

    # ---- reading

    def position_of(self, offset: int) -> int | None:
        """Where the first batch starts whose last offset is at or after `offset`; None beyond the end."""
        if self._next_read is not None and self._next_read[0] == offset:
            return self._next_read[1]
        found = self.find(offset)
        return None if found is None else found.position

    def find(self, offset: int) -> FoundBatch | None:
        """The first batch whose last offset is at or after `offset`; None beyond the end."""
        for found in self.batches(self.offset_index.position_for(offset)):
            if found.header.last_offset >= offset:
                return found
        return None

    def read(
        self, position: int, max_bytes: int, end_position: int, *, at_least_one: bool
    ) -> FileSlice:
        """Whole batches from `position` on, none at or past the end: at most `max_bytes`, unless one is owed."""
        if position >= end_position:
            return FileSlice(self.log, position, 0)
        if end_position - position <= max_bytes:
            return FileSlice(self.log, position, end_position - position)
        end = self._last_batch_end(position, position + max_bytes)
        if end > position + max_bytes and not at_least_one:
            end = position
        return FileSlice(self.log, position, min(end, end_position) - position)

    def _last_batch_end(self, start: int, limit: int) -> int:
        """End of the last batch that ends at or before `limit`, or of the first one at `start`."""
        limit = max(limit, start + 1)
        position = max(start, self.offset_index.position_before(limit))
        while position < limit:
            offset, size = read_offset_and_size(self.log.read(position, LOG_OVERHEAD), 0)
            if position + size > limit:
                if position == start:
                    return position + size
                self._next_read = offset, position
                return position
            position += size
        return position

    def batches(self, position: int = 0) -> Iterator[FoundBatch]:
        """Headers of all batches from `position` on. CorruptBatch if the file does not hold whole batches."""
        return batches_in(self.log, position)

    def read_next_offset(self) -> int:
        """First offset after the last batch; reads only what the index does not cover."""
        next_offset = self.base_offset
        if self.offset_index.entries and self.offset_index.last_position >= self.size:
            raise CorruptBatch(f"{self.log.path}: the index names a batch behind the file's end")
        for found in self.batches(self.offset_index.last_position):
            next_offset = found.header.next_offset
        return next_offset

    def first_batch_reaching(self, timestamp: int, from_offset: int) -> FoundBatch | None:
        """The first batch that ends at or after `from_offset` and has a record at or after `timestamp`."""
        start = max(from_offset, self.time_index.offset_for(timestamp))
        for found in self.batches(self.offset_index.position_for(start)):
            header = found.header
            if header.last_offset >= from_offset and header.max_timestamp >= timestamp:
                return found
        return None

    def batch_bytes(self, found: FoundBatch) -> bytes:
        """One batch as stored."""
        return self.log.read(found.position, found.header.size)

    # ---- files

    def files(self) -> list[File]:
        """All files of the segment that exist."""
        files = [self.log, self.offset_index.file, self.time_index.file]
        if self.txn_index.file is not None:
            files.append(self.txn_index.file)
        return files

    def sync(self) -> None:
        """Make all files durable, now."""
        for file in self.files():
            file.syncer()()

    def close(self) -> None:
        """Give the descriptors back."""
        for file in self.files():
            file.close()

    def rename(self, *, add: str = "", remove: str = "", log_first: bool = True) -> None:
        """Change the last suffix of the files: `.deleted`, `.cleaned`, `.swap` or none.

        The `.log` file decides what a segment is after a crash, so its turn in the order matters to the caller.
        """
        files = self.files() if log_first else reversed(self.files())
        for file in files:
            target = file.path.removesuffix(remove) + add
            self._disk.rename(file.path, target)
            file.renamed(target)
        self.txn_index.renamed(self.txn_index.path.removesuffix(remove) + add)

    def moved_to(self, base_offset: int, *, now_ms: int) -> "Segment":
        """This segment, which is empty, under the name of another base offset."""
        directory = self.log.path.rpartition("/")[0]
        path = f"{directory}/{offset_name(base_offset)}"
        sizes = SegmentSizes(txn_index=None if self.txn_index.file is None else 0)
        self.close()
        for file in reversed(
            self.files()
        ):  # the `.log` file last: an index without it is no segment
            self._disk.rename(file.path, path + "." + file.path.rpartition(".")[2])
        return Segment(self._disk, path, base_offset, self.config, sizes=sizes, created_ms=now_ms)

    def remove(self) -> None:
        """Remove the files from the disk; views handed out keep what they map."""
        for file in self.files():
            file.close()
            self._disk.remove(file.path)
