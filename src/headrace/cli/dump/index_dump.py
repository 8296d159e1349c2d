"""Index and snapshot files of a segment as text, compared with the segment they belong to."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from headrace.cli.dump.segment_dump import base_offset_of
from headrace.cli.shell.command_line import Failure, tell
from headrace.errors import CorruptBatch
from headrace.log.files.os_disk import OsDisk
from headrace.log.producers.producer_snapshot import decode_snapshot
from headrace.log.segments.txn_index import TxnIndex
from headrace.records.batch_reader import iterate_records
from headrace.records.batch_view import HEADER_BYTES, BatchHeader, read_header

_OFFSET_ENTRY = Struct(">ii")  # see log/segments/offset_index.py
_TIME_ENTRY = Struct(">qi")  # see log/segments/time_index.py
NO_TIMESTAMP = -1


class _Place(NamedTuple):
    """A batch in a segment's file."""

    position: int
    header: BatchHeader


class IndexDump:
    """Prints indexes and remembers what does not fit their logs."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._sanity_only = options.index_sanity_check
        self._verify_only = options.verify_index_only
        self._complaints: dict[str, list[str]] = {}

    def dump_offset_index(self, path: str) -> None:
        base_offset = base_offset_of(path)
        content = _read(path)
        if len(content) < _OFFSET_ENTRY.size:
            print(f"{path} is empty.")
            return
        if self._sanity_only:
            _check_size(path, content, _OFFSET_ENTRY.size)
            return
        with open(_sibling(path, ".log"), "rb") as log:
            for number, (relative, position) in enumerate(_entries(_OFFSET_ENTRY, content)):
                if relative == 0 and number:  # a pre-allocated tail
                    return
                log.seek(position)
                head = log.read(HEADER_BYTES)
                found = read_header(head).last_offset if len(head) == HEADER_BYTES else -1
                offset = base_offset + relative
                if found != offset:
                    self._complain(
                        "Mismatches in ", path, f"  Index offset: {offset}, log offset: {found}"
                    )
                if not self._verify_only:
                    print(f"offset: {offset} position: {position}")

    def dump_time_index(self, path: str) -> None:
        base_offset = base_offset_of(path)
        content = _read(path)
        if self._sanity_only:
            _check_size(path, content, _TIME_ENTRY.size)
            return
        batches = {place.header.last_offset: place for place in _batches(_sibling(path, ".log"))}
        previous = NO_TIMESTAMP
        for number, (timestamp, relative) in enumerate(_entries(_TIME_ENTRY, content)):
            if relative == 0 and number:
                return
            offset = base_offset + relative
            place = batches.get(offset)
            if place is None:
                after = [last for last in batches if last >= offset]
                self._complain(
                    "The following indexed offsets are not found in ",
                    path,
                    f"Indexed offset: {offset}, found log offset: {min(after, default=-1)}",
                )
            else:
                self._compare_times(path, timestamp, previous, place)
            if not self._verify_only:
                print(f"timestamp: {timestamp} offset: {offset}")
            previous = timestamp

    def _compare_times(self, path: str, timestamp: int, previous: int, place: _Place) -> None:
        with open(_sibling(path, ".log"), "rb") as log:
            log.seek(place.position)
            batch = log.read(place.header.size)
        found = max(
            (record.timestamp for record in iterate_records(batch, place.header)),
            default=NO_TIMESTAMP,
        )
        if found != timestamp:
            self._complain(
                "Found timestamp mismatch in ",
                path,
                f"  Index timestamp: {timestamp}, log timestamp: {found}",
            )
        if previous >= timestamp:
            self._complain(
                "Found out of order timestamp in ",
                path,
                f"  Index timestamp: {timestamp}, Previously indexed timestamp: {previous}",
            )

    def dump_txn_index(self, path: str) -> None:
        for each in TxnIndex(OsDisk(), path, os.path.getsize(path)):
            print(
                f"version: 0 producerId: {each.producer_id} firstOffset: {each.first_offset}"
                f" lastOffset: {each.last_offset} lastStableOffset: {each.last_stable_offset}"
            )

    def dump_snapshot(self, path: str) -> None:
        try:
            state = decode_snapshot(_read(path))
        except CorruptBatch as corrupt:
            tell(str(corrupt))
            return
        for entry in state:
            first = entry.txn_first_offset
            text = (
                f"producerId: {entry.producer_id} producerEpoch: {entry.epoch}"
                f" coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset:"
                f" {'OptionalLong.empty' if first is None else f'OptionalLong[{first}]'}"
                f" lastTimestamp: {entry.last_timestamp}"
            )
            if entry.batches:
                last = entry.batches[0]
                text += (
                    f" firstSequence: {last.first_sequence} lastSequence: {last.last_sequence}"
                    f" lastOffset: {last.last_offset} offsetDelta: {last.last_offset - last.base_offset}"
                    f" timestamp: {last.timestamp}"
                )
            print(text)

    def _complain(self, title: str, path: str, line: str) -> None:
        self._complaints.setdefault(f"{title}:{os.path.abspath(path)}", []).append(line)

    def tell_mismatches(self) -> None:
        for title, lines in self._complaints.items():
            tell(title, *lines)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _entries(entry: Struct, content: bytes) -> Iterator[tuple[int, ...]]:
    whole = len(content) - len(content) % entry.size
    return entry.iter_unpack(content[:whole])


def _check_size(path: str, content: bytes, entry_bytes: int) -> None:
    if len(content) % entry_bytes:
        raise Failure(
            f"{path} did not pass the sanity check",
            why=f"{len(content)} bytes are no multiple of {entry_bytes}",
            hint="a broker rebuilds such an index when it starts",
        )
    print(f"{path} passed sanity check.")


def _sibling(path: str, suffix: str) -> str:
    return os.path.splitext(path)[0] + suffix


def _batches(path: str) -> Iterator[_Place]:
    with open(path, "rb") as file:
        position = 0
        while len(head := file.read(HEADER_BYTES)) == HEADER_BYTES:
            header = read_header(head)
            if header.size < HEADER_BYTES:
                return
            yield _Place(position, header)
            position += header.size
            file.seek(position)
