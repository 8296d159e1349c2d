"""Partition directories that Headrace's log wrote, with everything in them that Kafka's tools and broker must read."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from headrace.ids import TopicPartition
from headrace.log.append_result import Appended
from headrace.log.files.file_slice import FileSlice
from headrace.log.files.os_disk import OsDisk
from headrace.log.log_config import LogConfig
from headrace.log.partition_log import PartitionLog
from headrace.log.producers.producer_state import NOT_VERIFIED
from headrace.log.recovery import Checkpointed, open_log
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import headers_in
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType, build_marker

START_MS = 1_700_000_000_000
SMALL_SEGMENTS = LogConfig(segment_bytes=16_384, index_interval_bytes=1024)


@dataclass(slots=True)
class OurLog:
    """A log being written, and what was written."""

    log: PartitionLog
    codec: Codec = Codec.NONE
    records: list[Record] = field(default_factory=list)
    markers: list[tuple[int, ControlType]] = field(default_factory=list)
    offsets_of: dict[int, set[int]] = field(default_factory=dict)
    leader_epoch: int = 0
    _chance: random.Random = field(default_factory=lambda: random.Random(7))

    def append(self, count: int, options: BatchOptions | None = None) -> int:
        """Append one batch of `count` records; returns its base offset."""
        records = [self._record(number) for number in range(count)]
        batch = build_batch(records, options or BatchOptions(codec=self.codec))
        appended = self.log.append_as_leader(
            [batch], leader_epoch=self.leader_epoch, now_ms=START_MS, verified=NOT_VERIFIED
        )
        assert isinstance(appended, Appended), appended
        self.records += [
            record._replace(offset=appended.base_offset + record.offset) for record in records
        ]
        return appended.base_offset

    def _record(self, number: int) -> Record:
        written = len(self.records) + number
        # Times wander, as those of real producers do: the time index must keep the largest so far.
        timestamp = START_MS + written * 10 - self._chance.randrange(200)
        value = None if written % 17 == 5 else b"%d:" % written + self._chance.randbytes(120)
        headers = (("first", b"%d" % written), ("null", None)) if written % 5 == 0 else ()
        return Record(number, timestamp, b"key-%d" % (written % 50), value, headers)

    def append_by(self, producer_id: int, count: int, *, sequence: int, transactional: bool) -> int:
        """Append a batch of an idempotent or transactional producer."""
        options = BatchOptions(
            codec=self.codec,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            transactional=transactional,
        )
        base_offset = self.append(count, options)
        self.offsets_of.setdefault(producer_id, set()).update(
            range(base_offset, base_offset + count)
        )
        return base_offset

    def committed_offsets(self) -> set[int]:
        """The offsets that readers of committed data see."""
        aborted = {
            offset for producer_id in (2002, 2003) for offset in self.offsets_of[producer_id]
        }
        return {record.offset for record in self.records} - aborted

    def end_transaction(self, producer_id: int, control_type: ControlType) -> None:
        marker = build_marker(
            control_type,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=3,
            timestamp=START_MS,
        )
        appended = self.log.append_as_leader(
            [marker], leader_epoch=self.leader_epoch, now_ms=START_MS, from_client=False
        )
        assert isinstance(appended, Appended), appended
        self.markers.append((appended.base_offset, control_type))


def open_ours(directory: Path, checkpointed: Checkpointed | None = None) -> PartitionLog:
    """Our log in this directory."""
    topic, _, partition = directory.name.rpartition("-")
    here = TopicPartition(topic, int(partition))
    return open_log(
        OsDisk(), str(directory), here, SMALL_SEGMENTS, now_ms=START_MS, checkpointed=checkpointed
    )


def write_ours(directory: Path, codec: Codec, *, second_leader_epoch: int = 2) -> OurLog:
    """A log of several segments: plain, idempotent and transactional batches, two leader epochs. Not closed."""
    ours = OurLog(log=open_ours(directory), codec=codec)
    for _ in range(12):
        ours.append(10)
    for number in range(6):
        ours.append_by(producer_id=1001, count=4, sequence=4 * number, transactional=False)
    ours.leader_epoch = second_leader_epoch
    for number in range(4):  # two producers interleaved: one will commit, one abort
        ours.append_by(producer_id=2001, count=5, sequence=5 * number, transactional=True)
        ours.append_by(producer_id=2002, count=5, sequence=5 * number, transactional=True)
        ours.append(10)
    ours.end_transaction(2001, ControlType.COMMIT)
    ours.append(10)
    ours.end_transaction(2002, ControlType.ABORT)
    for number in range(8):  # an aborted transaction that spans segments
        ours.append_by(producer_id=2003, count=12, sequence=12 * number, transactional=True)
    ours.end_transaction(2003, ControlType.ABORT)
    ours.append(10)
    assert len(ours.log.segments) >= 3, "the sample must have several segments"
    return ours


def read_ours(log: PartitionLog) -> Iterator[Record]:
    """Every record between the log's bounds, control records left out."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, 1 << 20, log.log_end_offset)
        assert isinstance(found, FileSlice), found
        content = found.copy()
        for position, header in headers_in(content):
            if not header.is_control:
                records = read_batch(content[position : position + header.size])
                yield from (record for record in records if record.offset >= log.log_start_offset)
            offset = header.next_offset
