"""The process that rewrites segments for compaction: a job as a line on standard input, results line by line on standard output.

A process of its own, because opening millions of records would hold the interpreter's lock against the event loop. It
touches only sealed segments and its own `.cleaned` files; if it dies, the log is unchanged. It ends when standard input ends,
because a broker that is started again must be the only one that writes to its directories.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator

import msgspec

from headrace.errors import DiskFull, HeadraceError
from headrace.log.compaction.compaction_job import (
    CompactionJob,
    CompactionLimits,
    CompactionProgress,
    RewrittenSegment,
)
from headrace.log.compaction.compaction_rewrite import Compaction
from headrace.log.files.disk import Disk
from headrace.log.files.os_disk import OsDisk
from headrace.tied_process import end_with_owner


class CleanerOrder(msgspec.Struct):
    """What the broker asks for."""

    job: CompactionJob
    limits: CompactionLimits
    max_bytes_per_second: float


class CleanerReport(msgspec.Struct):
    """One line of output: a rewritten segment, or at the end the counts or the error."""

    rewritten: RewrittenSegment | None = None
    progress: CompactionProgress | None = None
    error: str | None = None
    is_disk_full: bool = False


def main() -> None:
    """Run the job that standard input orders."""
    os.nice(5)  # the broker has priority
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=CleanerOrder)
    end_with_owner()
    for report in do_job(OsDisk(max_open_files=16), order, _pace(order.max_bytes_per_second)):
        _report(report)


def do_job(
    disk: Disk, order: CleanerOrder, pace: Callable[[int], None] = lambda _: None
) -> Iterator[CleanerReport]:
    """Rewrite the ordered segments one after the other. `pace` is called with the number of bytes read."""
    compaction = Compaction(disk, order.job, order.limits, pace)
    try:
        for rewritten in compaction.rewrite():
            yield CleanerReport(rewritten=rewritten)
    except HeadraceError as error:
        yield CleanerReport(error=str(error), is_disk_full=isinstance(error, DiskFull))
    else:
        yield CleanerReport(progress=compaction.progress)


def _report(report: CleanerReport) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(report) + b"\n")
    sys.stdout.buffer.flush()


def _pace(max_bytes_per_second: float) -> Callable[[int], None]:
    started = time.monotonic()
    read_bytes = 0

    def pace(count: int) -> None:
        nonlocal read_bytes
        read_bytes += count
        ahead_s = started + read_bytes / max_bytes_per_second - time.monotonic()
        if ahead_s > 0:
            time.sleep(ahead_s)

    return pace


if __name__ == "__main__":
    main()
