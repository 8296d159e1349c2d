"""The bytes on the pages docs/formats/segment.md, indexes.md and checkpoints.md are those that the log reads and writes."""

from uuid import UUID

from headrace.ids import TopicPartition
from headrace.log.files.checkpoint import (
    read_epochs,
    read_offsets,
    read_topic_id,
    write_epochs,
    write_offsets,
    write_topic_id,
)
from headrace.log.files.meta_properties import claim_directory
from headrace.log.files.recovery_notes import RecoveryNotes, read_notes, write_notes
from headrace.log.log_config import LogConfig
from headrace.log.producers.producer_snapshot import decode_snapshot, encode_snapshot
from headrace.log.producers.producer_state import ProducerState
from headrace.log.segments.offset_index import OffsetIndex
from headrace.log.segments.segment import Segment
from headrace.log.segments.time_index import TimeIndex, TimestampOffset
from headrace.log.segments.txn_index import AbortedTxn, TxnIndex
from headrace.records.batch_builder import BatchOptions, build_batch
from headrace.records.batch_reader import Record, read_batch
from headrace.records.batch_view import read_header, stamp
from headrace.records.control_batch import ControlType, build_marker, read_marker
from headrace.testing.memory_disk import MemoryDisk
from tests.golden.log_pages import hex_examples, text_example

RECORDS = [
    Record(5, 1_700_000_000_000, b"k", b"hello", (("h", b"1"),)),
    Record(6, 1_700_000_000_007, b"k", None),
]
OPTIONS = BatchOptions(leader_epoch=3, producer_id=4000, producer_epoch=0, base_sequence=12)


def test_batches() -> None:
    batch, marker = hex_examples("segment.md")
    assert read_batch(batch) == RECORDS
    assert build_batch(RECORDS, OPTIONS) == batch
    assert read_marker(marker) == (ControlType.ABORT, 2)
    header = read_header(marker)
    assert (header.base_offset, header.producer_id, header.max_timestamp) == (
        7,
        4000,
        1_700_000_000_100,
    )
    built = build_marker(
        ControlType.ABORT,
        producer_id=4000,
        producer_epoch=0,
        coordinator_epoch=2,
        timestamp=1_700_000_000_100,
    )
    stamp(built, 0, 7, 3)
    assert built == marker


def example_segment(disk: MemoryDisk) -> Segment:
    """Six batches of two records and 97 bytes from offset 100 on, a millisecond apart."""
    segment = Segment.create(disk, "/100", 100, LogConfig(index_interval_bytes=150), now_ms=0)
    for number in range(6):
        records = [
            Record(100 + 2 * number + step, 1_700_000_000_000 + number, b"key", b"01234567")
            for step in (0, 1)
        ]
        batch = build_batch(records)
        assert len(batch) == 97
        segment.append([batch], [read_header(batch)])
    segment.seal()
    return segment


def test_indexes() -> None:
    offsets, times, aborted = hex_examples("indexes.md")
    disk = MemoryDisk()
    example_segment(disk)
    assert disk.read_bytes("/100.index") == offsets
    assert disk.read_bytes("/100.timeindex") == times
    assert OffsetIndex(disk.open("/100.index"), 100, 1000).position_for(107) == 194
    time_index = TimeIndex(disk.open("/100.timeindex"), 100, 1000)
    assert time_index.last == TimestampOffset(1_700_000_000_005, 111)
    disk.create("/page.txnindex").append(aborted)
    entries = list(TxnIndex(disk, "/page.txnindex", len(aborted)))
    assert entries == [AbortedTxn(4000, 5, 7, 5)]
    TxnIndex(disk, "/ours.txnindex", None).append(entries[0])
    assert disk.read_bytes("/ours.txnindex") == aborted


def test_text_checkpoints() -> None:
    disk = MemoryDisk()
    page = text_example("checkpoints.md", "recovery-point-offset-checkpoint")
    disk.replace("/page", page)
    offsets = read_offsets(disk, "/page")
    assert offsets == {TopicPartition("orders", 0): 1500, TopicPartition("my-topic.v1", 12): 0}
    write_offsets(disk, "/ours", offsets)
    assert disk.read_bytes("/ours") == page
    page = text_example("checkpoints.md", "leader-epoch-checkpoint")
    disk.replace("/page", page)
    assert read_epochs(disk, "/page") == [(0, 0), (3, 1200)]
    write_epochs(disk, "/ours", [(0, 0), (3, 1200)], durable=True)
    assert disk.read_bytes("/ours") == page


def test_identities() -> None:
    disk = MemoryDisk()
    page = text_example("checkpoints.md", "partition.metadata")
    disk.replace("/partition.metadata", page)
    topic_id = read_topic_id(disk, "")
    assert topic_id == UUID("5c6d7e8f-0011-2233-4455-66778899aabb")
    write_topic_id(disk, "", topic_id)
    assert disk.read_bytes("/partition.metadata") == page
    page = text_example("checkpoints.md", "recovery.metadata")
    disk.replace("/recovery.metadata", page)
    notes = read_notes(disk, "")
    assert notes == RecoveryNotes(truncated_to=1200, has_gaps=True)
    disk.remove("/recovery.metadata")
    write_notes(disk, "", notes, durable=True)
    assert disk.read_bytes("/recovery.metadata") == page
    page = text_example("checkpoints.md", "meta.properties")
    claim_directory(
        disk, "", cluster_id="XRrgxjsfSoadVQ9sOguOIQ", node_id=3, new_directory_id=UUID(int=5)
    )
    assert disk.read_bytes("/meta.properties") == page


def test_producer_snapshot() -> None:
    [page] = hex_examples("checkpoints.md")
    [entry] = decode_snapshot(page)
    assert (entry.producer_id, entry.epoch, entry.txn_first_offset) == (4000, 0, None)
    [known] = entry.batches
    assert (known.first_sequence, known.last_sequence) == (12, 13)
    assert (known.base_offset, known.last_offset) == (5, 6)
    state = ProducerState()
    state.note_data(read_header(build_batch(RECORDS, OPTIONS)))
    assert encode_snapshot(state) == page
