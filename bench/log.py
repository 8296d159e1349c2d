"""The log on disk against what the operating system does alone: append, open, recover, read.

Each pair is measured alternately on the same file system, into new files that are removed before the next turn, and
compared by medians. Nothing is synced in either: the question is what the log costs on top of the page cache.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median

from bench.report import Line, Report
from headrace.ids import TopicPartition
from headrace.log.append_result import Appended
from headrace.log.files.disk import Disk
from headrace.log.files.file_slice import FileSlice
from headrace.log.files.os_disk import OsDisk
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.recovery import Checkpointed, open_log
from headrace.records.batch_builder import build_batch
from headrace.records.batch_reader import Record
from headrace.records.batch_view import stamp
from tests.support.counting_disk import CountingDisk

NOW_MS = 1_700_000_000_000
MIB = 1024 * 1024
GIB = 1024 * MIB
REPEATS = 9
CONFIG = LogConfig(max_message_bytes=2 * MIB)


def run() -> Report:
    """All of it; about a minute."""
    report = Report("log: ratios to the bare operating system, medians of alternating runs")
    with _scratch() as scratch:
        report.lines.append(_append(scratch, MIB, 128 * MIB, at_least=0.6))
        report.lines.append(_append(scratch, 16 * 1024, 64 * MIB, at_least=0.3))
        report.lines.append(_append(scratch, 1024, 8 * MIB, at_least=None))
        report.lines += _open_clean(scratch, segments=10_000)
        report.lines += _recover(scratch, GIB)
        report.lines += _read(scratch, 256 * MIB)
    return report


@contextmanager
def _scratch() -> Iterator[str]:
    directory = tempfile.mkdtemp(prefix="headrace-bench-", dir=os.environ.get("BENCH_DIRECTORY"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def _batch(size: int) -> bytearray:
    value = os.urandom(size - 61 - 20)
    batch = build_batch([Record(0, NOW_MS, None, value)])
    assert abs(len(batch) - size) < 32
    return batch


def _open(disk: Disk, directory: str, known: Checkpointed | None = None) -> PartitionLog:
    return open_log(
        disk, directory, TopicPartition("t", 0), CONFIG, now_ms=NOW_MS, checkpointed=known
    )


def _fill(log: PartitionLog, batch: bytearray) -> None:
    log.append_as_leader([batch], leader_epoch=1, now_ms=NOW_MS, from_client=False)


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _alternate(
    first: Callable[[], float], second: Callable[[], float], repeats: int = REPEATS
) -> tuple[float, float]:
    """Medians of both, measured in turns, after one turn to warm up."""
    first(), second()
    pairs = [(first(), second()) for _ in range(repeats)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


# ---- append


def _append(scratch: str, batch_bytes: int, total_bytes: int, at_least: float | None) -> Line:
    batch = _batch(batch_bytes)
    count = total_bytes // len(batch)
    path = f"{scratch}/bare"

    def bare() -> float:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        write = os.write

        def work() -> None:
            for _ in range(count):
                write(descriptor, batch)

        spent = _timed(work)
        os.close(descriptor)
        os.unlink(path)
        return spent

    def ours() -> float:
        log = _open(OsDisk(), f"{scratch}/t-0")

        def work() -> None:
            for _ in range(count):
                stamp(batch, 0, 0, -1)  # as clients send it
                appended = log.append_as_leader([batch], leader_epoch=1, now_ms=NOW_MS)
                assert type(appended) is Appended, appended

        spent = _timed(work)
        log.abandon()
        shutil.rmtree(f"{scratch}/t-0")
        return spent

    floor, spent = _alternate(bare, ours)
    rates = f"{total_bytes / spent / MIB:,.0f} of {total_bytes / floor / MIB:,.0f} MiB/s, {spent / count * 1e6:.1f} of {floor / count * 1e6:.1f} us a batch"
    name = f"{batch_bytes // MIB} MiB" if batch_bytes >= MIB else f"{batch_bytes // 1024} KiB"
    return Line(
        what=f"append of {name} batches", value=floor / spent, at_least=at_least, detail=rates
    )


# ---- open


def _open_clean(scratch: str, segments: int) -> list[Line]:
    directory = f"{scratch}/t-0"
    log = _open(OsDisk(), directory)
    batch = _batch(1024)
    for _ in range(segments):
        _fill(log, batch)
        log.roll(NOW_MS)
    _fill(log, batch)
    written = log.size
    log.recovery_point = log.log_end_offset  # thirty thousand syncs would prove nothing here
    log.close(NOW_MS)
    clean = Checkpointed(clean=True, recovery_point=log.log_end_offset)

    def floor() -> float:
        def work() -> None:
            with os.scandir(directory) as entries:
                for entry in entries:
                    entry.stat()

        return _timed(work)

    def ours() -> float:
        return _timed(lambda: _open(OsDisk(), directory, clean).abandon())

    listing, opening = _alternate(floor, ours, 5)
    counting = CountingDisk(OsDisk())
    opened = _open(counting, directory, clean)
    assert (len(opened.segments), opened.log_end_offset) == (segments + 1, segments + 1)
    shutil.rmtree(directory)
    return [
        Line(
            what=f"bytes read to open {segments:,} closed segments",
            value=counting.bytes_read(".log"),
            unit="bytes",
            at_most=4096,
            detail=f"of {written:,}, all in the active segment",
        ),
        Line(
            what="... and time, against listing the directory",
            value=opening / listing,
            detail=f"{opening * 1e3:.0f} against {listing * 1e3:.0f} ms",
        ),
    ]


# ---- recover


def _recover(scratch: str, total_bytes: int) -> list[Line]:
    directory = f"{scratch}/t-0"
    log = _open(OsDisk(), directory)
    batch = _batch(64 * 1024)
    while log.size + len(batch) <= total_bytes:
        _fill(log, batch)
    written, paths = log.size, [segment.log.path for segment in log.segments]
    log.abandon()  # as a kill would: nothing closed, nothing synced

    def floor() -> float:
        def work() -> None:
            for path in paths:
                descriptor = os.open(path, os.O_RDONLY)
                while os.read(descriptor, 8 * MIB):
                    pass
                os.close(descriptor)

        return _timed(work)

    reading, spent = [], []
    for turn in range(4):
        reading.append(floor())
        disk = CountingDisk(OsDisk())
        spent.append(_timed(lambda disk=disk: _open(disk, directory).abandon()))  # type: ignore[misc]  # bound early
        if turn == 0:
            counted = disk.bytes_read(".log")
            reading, spent = [], []  # the first turn also waits for the disk
    shutil.rmtree(directory)
    return [
        Line(
            what=f"bytes read to recover {written / GIB:.2f} GiB, over their number",
            value=counted / written,
            at_least=1.0,
            at_most=1.0,
            detail="each byte once",
        ),
        Line(
            what="... and speed, against reading the file",
            value=median(reading) / median(spent),
            detail=f"{written / median(spent) / MIB:,.0f} of {written / median(reading) / MIB:,.0f} MiB/s",
        ),
    ]


# ---- read


def _read(scratch: str, total_bytes: int) -> list[Line]:
    log = _open(OsDisk(), f"{scratch}/t-0")
    batch = _batch(16 * 1024)
    count = total_bytes // len(batch)
    for _ in range(count):
        _fill(log, batch)
    descriptor = os.open(log.segments.active.log.path, os.O_RDONLY)

    def floor() -> float:
        def work() -> None:
            position = 0
            while chunk := os.pread(descriptor, MIB, position):
                position += len(chunk)

        return _timed(work)

    def slices() -> Iterator[FileSlice]:
        offset = 0
        while offset < count:
            found = log.read(offset, MIB, count)
            assert type(found) is FileSlice
            yield found
            offset += found.length // len(batch)

    def ours() -> float:
        def work() -> None:
            for found in slices():
                found.view()

        return _timed(work)

    copying, viewing = _alternate(floor, ours)
    views = [found.view() for found in slices()]
    mappings = {id(view.obj) for view in views if isinstance(view, memoryview)}
    assert sum(len(view) for view in views) == count * len(batch)
    views.clear()
    os.close(descriptor)
    log.abandon()
    shutil.rmtree(f"{scratch}/t-0")
    return [
        Line(
            what="mappings behind all slices of a segment",
            value=len(mappings),
            unit="",
            at_most=1,
            detail="a read is a slice of the file, not a copy",
        ),
        Line(
            what="slices of 1 MiB, against copies by pread",
            value=copying / viewing,
            at_least=1.0,
            detail=f"{viewing / total_bytes * MIB * 1e6:.1f} against {copying / total_bytes * MIB * 1e6:.1f} us each",
        ),
    ]
