"""Puts a rewritten segment in the place of those it replaces, so that a crash at any moment leaves one or the other.

    1  the new segment is written and synced as `.cleaned`; a crash leaves the old ones, `.cleaned` files are removed
    2  its indexes, then its `.log`, are renamed to `.swap`; from the last rename on, the new one counts
    3  the old segments are renamed to `.deleted`, each `.log` last: while it is there, all files of it are old ones
    4  the `.swap` suffix goes, from the `.log` last: until then the swap is known to be unfinished

`finish_swaps` does at opening what a crash left undone. Kafka's own recovery reads these states the same way.
"""

from typing import Final

from headrace.errors import CorruptBatch, DiskFailed, DiskFull
from headrace.log.files.disk import Disk, FileStat
from headrace.log.partition_log import PartitionLog
from headrace.log.segments.segment import (
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    Segment,
    batches_in,
    offset_name,
)

CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
DELETED: Final = ".deleted"
_UNFINISHED: Final = (CLEANED, SWAP, DELETED, ".tmp")


def swap_in(log: PartitionLog, cleaned: Segment, replaced: list[Segment], *, now_ms: int) -> None:
    """Steps 2 to 4, for a synced `.cleaned` segment that starts where the first replaced one does.

    After DiskFailed the log must not be used any more.
    """
    assert cleaned.base_offset == replaced[0].base_offset
    try:
        cleaned.rename(add=SWAP, remove=CLEANED, log_first=False)
        log.disk.sync_directory(log.directory)
        for segment in replaced:
            log.retire(segment, now_ms, replaced=True)
        cleaned.rename(remove=SWAP, log_first=False)
        log.segments.add(cleaned)
    except DiskFull as error:
        raise DiskFailed(str(error)) from error  # only the next start can complete it


def finish_swaps(disk: Disk, directory: str, found: list[FileStat]) -> bool:
    """Complete or undo what a crash interrupted, and remove files that wait for removal. Returns whether any did."""
    names = {stat.name for stat in found}
    if not any(name.endswith(_UNFINISHED) for name in names):
        return False
    committed = sorted(
        name.removesuffix(SWAP) for name in names if name.endswith(LOG_SUFFIX + SWAP)
    )
    for log_name in committed:
        _finish_swap(disk, directory, int(log_name.removesuffix(LOG_SUFFIX)), names)
    for name in names:
        if name.endswith(_UNFINISHED):
            disk.remove(f"{directory}/{name}")
    return True


def _finish_swap(disk: Disk, directory: str, base_offset: int, names: set[str]) -> None:
    path = f"{directory}/{offset_name(base_offset)}"
    next_offset = _next_offset(disk, path + LOG_SUFFIX + SWAP, base_offset)
    for name in names:
        number = name.removesuffix(LOG_SUFFIX)
        if name.endswith(LOG_SUFFIX) and number.isdigit():
            replaced = int(number)
            if base_offset <= replaced < next_offset:
                # The `.log` last, as in step 3: a second crash must not leave an old index beside a new `.log`.
                for suffix in reversed(SEGMENT_SUFFIXES):
                    disk.remove(f"{directory}/{offset_name(replaced)}{suffix}")
    for suffix in reversed(SEGMENT_SUFFIXES):
        if disk.exists(path + suffix + SWAP):
            disk.rename(path + suffix + SWAP, path + suffix)


def _next_offset(disk: Disk, path: str, base_offset: int) -> int:
    """First offset behind a swapped-in segment; at least one, for the segment it certainly replaces."""
    file = disk.open(path)
    next_offset = base_offset + 1
    try:
        for found in batches_in(file):
            next_offset = max(next_offset, found.header.next_offset)
    except CorruptBatch:
        pass  # recovery of the segment itself will cut it
    file.close()
    return next_offset
