"""The `.snapshot` files of one log directory: which there are, the newest usable one, writing and removing."""

from collections.abc import Callable
from typing import Final

from headrace.errors import CorruptBatch, DiskFull
from headrace.log.files.disk import Disk
from headrace.log.producers.producer_snapshot import (
    SNAPSHOT_SUFFIX,
    decode_snapshot,
    encode_snapshot,
)
from headrace.log.producers.producer_state import ProducerState
from headrace.log.segments.segment import offset_name

_SYNCED_AT_ONCE: Final = 64


class ProducerSnapshots:
    """Snapshots are hints: any may be missing or damaged, then an older one and more of the log are read."""

    __slots__ = ("_directory", "_disk", "_unsynced", "offsets")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self.offsets: set[int] = set()
        self._unsynced: set[int] = set()

    def path(self, offset: int) -> str:
        """The file that holds the state before `offset`."""
        return f"{self._directory}/{offset_name(offset)}{SNAPSHOT_SUFFIX}"

    def write(self, offset: int, producers: ProducerState, *, durable: bool = False) -> None:
        """Keep the state as it is before `offset`, if there is space for it."""
        try:
            self._disk.replace(self.path(offset), encode_snapshot(producers), durable=durable)
        except DiskFull:
            return  # one hint less; a log on a full disk must still open
        self.offsets.add(offset)
        if not durable:
            self._unsynced.add(offset)

    def syncers(self) -> list[Callable[[], None]]:
        """What makes snapshots durable that are not yet, some of them if they are many; to be run once."""
        chosen = sorted(self._unsynced)[:_SYNCED_AT_ONCE]
        self._unsynced.difference_update(chosen)
        return [self._syncer(offset) for offset in chosen if offset in self.offsets]

    def _syncer(self, offset: int) -> Callable[[], None]:
        file = self._disk.open(self.path(offset))
        try:
            return file.syncer()
        finally:
            file.close()  # nobody reads it before the next start

    def load_latest(self, end_offset: int) -> tuple[int, ProducerState]:
        """(offset, state) of the newest sound snapshot at or before `end_offset`; (0, empty) without one."""
        for offset in sorted(self.offsets, reverse=True):
            if offset <= end_offset:
                content = self._disk.read_bytes(self.path(offset))
                try:
                    if content is not None:
                        return offset, decode_snapshot(content)
                except CorruptBatch:
                    self.remove(offset)
        return 0, ProducerState()

    def remove(self, offset: int) -> None:
        """Remove one snapshot if it is there."""
        if offset in self.offsets:
            self.offsets.discard(offset)
            self._disk.remove(self.path(offset))

    def remove_superfluous(self, first_offset: int) -> None:
        """Remove those before the newest that is not past the log's first offset."""
        for offset in sorted(known for known in self.offsets if known <= first_offset)[:-1]:
            self.remove(offset)

    def remove_after(self, offset: int) -> None:
        """Remove snapshots of states past `offset`: the log was cut there."""
        for later in [known for known in self.offsets if known > offset]:
            self.remove(later)

    def remove_all(self) -> None:
        """Remove every snapshot."""
        for offset in list(self.offsets):
            self.remove(offset)
