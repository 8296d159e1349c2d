import dataclasses
import pickle
from pathlib import Path

import pytest

from headrace.errors import CorruptBatch, DiskFailed
from headrace.log.batch_filter import empty_batch
from headrace.log.compaction.compaction_job import CompactionLimits
from headrace.log.compaction.compaction_rewrite import Compaction
from headrace.log.compaction.log_compaction import discard, install, plan
from headrace.log.files.file_slice import FileSlice
from headrace.log.files.os_disk import OsDisk
from headrace.log.recovery import Checkpointed
from headrace.records.batch_view import read_header
from headrace.records.compression import Codec
from headrace.records.control_batch import ControlType, build_marker
from tests.support.keyed_log import COMPACTED, KeyedLog, room_for

DELETE_RETENTION_MS = COMPACTED.delete_retention_ms
ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT


@pytest.fixture
def keyed(tmp_path: Path) -> KeyedLog:
    return KeyedLog(tmp_path / "keyed-0")


# ---- values


def test_the_newest_value_of_each_key_stays_where_it_was(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"), (b"b", b"1"))
    keyed.put((b"a", b"2"), (b"c", b"1"), (b"a", b"3"))
    keyed.roll()
    keyed.put((b"b", b"2"))
    progress = keyed.compact_all()
    assert keyed.pairs() == [(3, b"c", b"1"), (4, b"a", b"3"), (5, b"b", b"2")]
    assert (progress.records_kept, progress.records_dropped) == (3, 3)
    assert progress.first_dirty_offset == 6
    assert progress.map_entries == 3


def test_active_segment_stays_and_does_not_count(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.roll()
    keyed.put((b"a", b"2"), (b"a", b"3"))
    assert keyed.compact().first_dirty_offset == 1
    assert keyed.pairs() == [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"a", b"3")]


def test_a_second_compaction_cleans_against_the_first(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"), (b"b", b"1"))
    keyed.compact_all()
    keyed.put((b"a", b"2"))
    assert keyed.assess().first_dirty_offset == 2
    keyed.compact_all()
    assert keyed.pairs() == [(1, b"b", b"1"), (2, b"a", b"2")]


def test_records_without_key_go(keyed: KeyedLog) -> None:
    keyed.log.update_config(dataclasses.replace(COMPACTED, cleanup_compact=False))
    keyed.put((None, b"from a time before compaction"), (b"a", b"1"))
    keyed.compact_all()
    assert keyed.pairs() == [(1, b"a", b"1")]


@pytest.mark.parametrize("codec", list(Codec))
def test_codecs_survive(keyed: KeyedLog, codec: Codec) -> None:
    for value in (b"1", b"2"):
        keyed.put((b"a", value), (b"only " + value, value * 100), codec=codec)
    keyed.compact_all()
    assert [offset for offset, _, _ in keyed.pairs()] == [1, 2, 3]
    assert {batch.header.codec for batch in keyed.batches()} == {codec}


def test_batches_that_lose_nothing_are_copied_as_they_are(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"), (b"b", b"1"), codec=Codec.ZSTD)
    keyed.put((b"c", b"1"))
    before = [batch.content for batch in keyed.batches()]
    keyed.put((b"c", b"2"))
    keyed.compact_all()
    assert keyed.batches()[0].content == before[0]


def test_a_segment_that_stays_as_it_is_is_not_replaced(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.roll()
    segment = keyed.log.segments.first
    progress = keyed.compact()
    assert progress.first_dirty_offset == 1
    assert keyed.log.segments.first is segment
    assert list(keyed.directory.glob("*.cleaned")) == []


def test_reading_from_any_offset_finds_the_next_batch(keyed: KeyedLog) -> None:
    for number in range(300):
        keyed.put((b"%d" % (number % 7), b"v" * 40), (b"%d" % (number % 11), b"w"))
        if number % 30 == 0:
            keyed.roll()
    keyed.compact_all()
    batches = keyed.batches()
    for offset in range(600):
        expected = next(b.header.base_offset for b in batches if b.header.last_offset >= offset)
        assert keyed.batches(offset)[0].header.base_offset == expected
    assert len(keyed.log.segments) == 2, "small neighbours were put together"


def test_the_end_of_the_compacted_part_stays_known(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.put_by(5, (b"b", b"1"), transactional=True)
    keyed.put_by(6, (b"x", b"1"), transactional=True)
    keyed.end(6, COMMIT)
    keyed.end(5, ABORT)
    keyed.put((b"a", None))
    keyed.compact_all()
    keyed.now_ms += DELETE_RETENTION_MS
    keyed.compact_all()
    last = keyed.batches()[-1]
    assert last.header.next_offset == keyed.log.log_end_offset == 6
    assert last.records == [], "the tombstone is gone, its place is not"


def test_groups_respect_segment_bytes(tmp_path: Path) -> None:
    config = dataclasses.replace(COMPACTED, segment_bytes=2000)
    keyed = KeyedLog(tmp_path / "keyed-0", config)
    for number in range(200):
        keyed.put((b"%d" % (number % 60), b"v" * 30))
    keyed.compact_all()
    sizes = [segment.size for segment in keyed.log.segments]
    assert max(sizes) <= 2000
    assert [offset for offset, _, _ in keyed.pairs()] == list(range(140, 200))
    keyed.put((b"z", b""))
    keyed.compact_all()
    assert len(keyed.log.segments) == 5, (
        "60 records of 110 bytes need four segments and an active one"
    )


# ---- the map's size


def test_a_full_map_ends_the_run_at_a_batch(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"), (b"b", b"1"))
    keyed.put((b"c", b"1"), (b"a", b"2"))
    keyed.put((b"a", b"3"), (b"b", b"2"))
    progress = keyed.compact_all(room_for(4))
    assert progress.first_dirty_offset == 4
    assert keyed.pairs() == [
        (1, b"b", b"1"),
        (2, b"c", b"1"),
        (3, b"a", b"2"),
        (4, b"a", b"3"),
        (5, b"b", b"2"),
    ]
    assert keyed.compact_all(room_for(4)).first_dirty_offset == 6
    assert keyed.pairs() == [(2, b"c", b"1"), (4, b"a", b"3"), (5, b"b", b"2")]


def test_a_batch_larger_than_the_map_is_compacted_in_steps(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"0"), (b"b", b"0"), (b"c", b"0"), (b"d", b"0"))
    keyed.put((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), (b"d", b"1"))
    keyed.roll()
    dirty = [keyed.compact(room_for(1)).first_dirty_offset for _ in range(8)]
    assert dirty == list(range(1, 9))
    assert keyed.pairs() == [(4, b"a", b"1"), (5, b"b", b"1"), (6, b"c", b"1"), (7, b"d", b"1")]


def test_tombstones_past_the_end_of_the_map_get_no_horizon_yet(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.put((b"b", None))
    keyed.compact_all(room_for(1))
    assert keyed.batches()[1].header.delete_horizon_ms is None
    keyed.compact_all(room_for(1))
    assert keyed.batches()[1].header.delete_horizon_ms == keyed.now_ms + DELETE_RETENTION_MS


# ---- tombstones


def test_a_tombstone_stays_for_its_time_and_then_goes(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.put((b"b", b"1"), (b"a", None), timestamp=5)
    keyed.compact_all()
    stamped = keyed.batches()[0].header
    assert stamped.delete_horizon_ms == keyed.now_ms + DELETE_RETENTION_MS
    assert keyed.pairs() == [(1, b"b", b"1"), (2, b"a", None)]
    assert [record.timestamp for record in keyed.records()] == [5, 6]
    keyed.now_ms += DELETE_RETENTION_MS - 1
    keyed.put((b"c", b"1"))
    keyed.compact_all()
    assert keyed.batches()[0].header == stamped, "the horizon is set once"
    keyed.now_ms += 1
    keyed.put((b"c", b"2"))
    keyed.compact_all()
    assert keyed.pairs() == [(1, b"b", b"1"), (4, b"c", b"2")]


# ---- producers


def test_the_last_batch_of_a_producer_leaves_its_header(keyed: KeyedLog) -> None:
    keyed.put_by(7, (b"a", b"1"))
    keyed.put_by(7, (b"a", b"2"), (b"b", b"1"), codec=Codec.GZIP)
    keyed.put((b"a", b"3"), (b"b", b"2"))
    keyed.compact_all()
    first = keyed.batches()[0]
    assert (first.header.base_offset, first.header.last_offset, first.records) == (1, 2, [])
    keyed.reopen()
    assert keyed.sequence_ends() == {7: (0, 2)}
    keyed.put_by(7, (b"c", b"1"))
    keyed.compact_all()
    assert 1 not in [batch.header.base_offset for batch in keyed.batches()]


def test_expired_producers_leave_nothing(keyed: KeyedLog) -> None:
    keyed.put_by(7, (b"a", b"1"))
    keyed.put((b"a", b"2"))
    keyed.log.producers.expire(keyed.now_ms + 10, 1)
    keyed.compact_all()
    assert [batch.header.base_offset for batch in keyed.batches()] == [1]


def test_a_marker_that_holds_its_producers_epoch_stays(keyed: KeyedLog) -> None:
    marker = keyed.end(7, ABORT, epoch=4)
    for _ in range(3):
        keyed.put((b"a", b"2"))
        keyed.compact_all()
        keyed.now_ms += DELETE_RETENTION_MS
    assert keyed.markers() == [marker]
    keyed.reopen()
    assert keyed.sequence_ends() == {7: (4, -1)}


# ---- transactions


def test_aborted_records_go_and_hide_nothing(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.put_by(7, (b"a", b"aborted"), (b"b", b"aborted"), transactional=True)
    keyed.end(7, ABORT)
    keyed.put_by(7, (b"c", b"1"), transactional=True)
    keyed.end(7, COMMIT)
    keyed.compact_all()
    assert keyed.pairs() == [(0, b"a", b"1"), (4, b"c", b"1")]
    assert keyed.table() == {b"a": b"1", b"c": b"1"}


def test_an_abort_marker_stays_until_its_data_is_gone_and_its_time_is_over(keyed: KeyedLog) -> None:
    keyed.put_by(7, (b"a", b"aborted"), transactional=True)
    marker = keyed.end(7, ABORT)
    keyed.put_by(7, (b"b", b"1"))
    keyed.compact_all()
    assert keyed.markers() == [marker], "its data was met"
    assert [txn.last_offset for txn in keyed.log.aborted_transactions(0, 9)] == [marker]
    keyed.put((b"x", b"1"))
    keyed.compact_all()
    assert keyed.markers() == [marker], "its time starts now"
    assert keyed.log.aborted_transactions(0, 9) == []
    keyed.now_ms += DELETE_RETENTION_MS
    keyed.put((b"x", b"2"))
    keyed.compact_all()
    assert keyed.markers() == []


def test_a_commit_marker_stays_while_a_record_of_its_transaction_does(keyed: KeyedLog) -> None:
    keyed.put_by(7, (b"a", b"1"), (b"b", b"1"), transactional=True)
    marker = keyed.end(7, COMMIT)
    keyed.put_by(7, (b"z", b"1"))
    for number in range(3):
        keyed.put((b"a", b"%d" % number))
        keyed.compact_all()
        keyed.now_ms += DELETE_RETENTION_MS
    assert keyed.markers() == [marker]
    keyed.put((b"b", b"2"))
    for number in range(3):
        keyed.compact_all()
        keyed.put((b"c", b"%d" % number))
        keyed.now_ms += DELETE_RETENTION_MS
    assert keyed.markers() == []


def test_a_transaction_that_ends_behind_the_compacted_part(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.put_by(7, (b"a", b"aborted"), transactional=True)
    keyed.roll()
    marker = keyed.end(7, ABORT)
    assert keyed.compact().first_dirty_offset == 2
    assert keyed.pairs() == [(0, b"a", b"1")]
    assert keyed.table() == {b"a": b"1"}
    assert keyed.markers() == [marker]
    keyed.reopen()
    assert keyed.last_stable_offset == 3, "the header that is left still opens the transaction"


def test_open_transactions_hold_compaction_back(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.roll()
    keyed.put((b"a", b"2"))
    keyed.put_by(7, (b"b", b"1"), transactional=True)
    keyed.roll()
    assert keyed.assess().end_offset == 1
    keyed.end(7, COMMIT)
    assert keyed.assess().end_offset == 3


def test_the_index_of_a_log_whose_dirty_part_starts_inside_a_segment(keyed: KeyedLog) -> None:
    keyed.put_by(7, (b"a", b"aborted"), transactional=True)
    keyed.end(7, ABORT)
    keyed.put_by(7, (b"a", b"1"), transactional=True)
    keyed.put_by(7, (b"b", b"1"), transactional=True)
    keyed.end(7, COMMIT)
    keyed.roll()
    keyed.log.cleaned_to = 2
    keyed.compact()
    assert keyed.table() == {b"a": b"1", b"b": b"1"}


# ---- what cannot be opened


def test_a_batch_that_inflates_too_far_is_kept_as_it_is(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.put((b"a", bytes(50_000)), codec=Codec.ZSTD)
    bomb = keyed.batches()[1].content
    keyed.put((b"b", b"1"), (b"b", b"2"))
    progress = keyed.compact_all(CompactionLimits(inflated_batch_bytes=10_000))
    assert progress.unreadable_batches == 1
    assert [batch.content for batch in keyed.batches()][1] == bomb
    assert [offset for offset, _, _ in keyed.pairs()] == [0, 1, 3], "and hides no older value"


def test_damaged_bytes_are_not_given_a_new_checksum(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"), (b"b", b"1"))
    keyed.put((b"a", b"2"))
    keyed.roll()
    path = keyed.directory / "00000000000000000000.log"
    damaged = bytearray(path.read_bytes())
    damaged[70] ^= 1
    path.write_bytes(damaged)
    keyed.put((b"z", b""))
    keyed.compact_all()
    assert path.read_bytes().startswith(bytes(damaged[:90]))


def test_a_file_that_is_not_batches_is_left_alone(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"))
    keyed.put((b"a", b"2"))
    keyed.roll()
    path = keyed.directory / "00000000000000000000.log"
    content = path.read_bytes()
    for damaged in (content[:-1], content[:80] + bytes(80), content[:8] + b"\x7f" + content[9:]):
        path.write_bytes(damaged)
        with pytest.raises((CorruptBatch, DiskFailed)):
            keyed.compact()
        assert path.read_bytes() == damaged
        assert list(keyed.directory.glob("*.cleaned")) == []


# ---- the run and its owner


def test_a_job_can_travel_to_another_process(keyed: KeyedLog) -> None:
    keyed.put_by(7, (b"a", b"1"), (b"a", b"2"), transactional=True)
    keyed.end(7, COMMIT)
    keyed.roll()
    job = plan(keyed.log, keyed.assess(), now_ms=keyed.now_ms)
    assert pickle.loads(pickle.dumps(job)) == job
    (rewritten,) = Compaction(OsDisk(max_open_files=2), job).rewrite()
    assert install(keyed.log, pickle.loads(pickle.dumps(rewritten)), now_ms=keyed.now_ms)
    assert keyed.pairs() == [(1, b"a", b"2")]


def test_results_are_thrown_away_if_the_log_has_changed(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"), (b"a", b"2"))
    keyed.roll()
    keyed.put((b"a", b"3"))
    keyed.roll()
    job = plan(keyed.log, keyed.assess(), now_ms=keyed.now_ms)
    (rewritten,) = Compaction(OsDisk(), job).rewrite()
    keyed.log.delete_segments([keyed.log.segments.first], now_ms=keyed.now_ms)
    assert not install(keyed.log, rewritten, now_ms=keyed.now_ms)
    assert list(keyed.directory.glob("*.cleaned")) == []
    assert keyed.pairs() == [(2, b"a", b"3")]


def test_results_are_thrown_away_if_the_log_has_its_old_size_again_after_a_truncation(
    keyed: KeyedLog,
) -> None:
    """A follower cuts to its leader's log and fetches other records of the same size."""
    keyed.put((b"a", b"1"))
    keyed.put((b"b", b"1"))
    keyed.put((b"a", b"2"))
    keyed.roll()
    size = keyed.log.segments.first.size
    job = plan(keyed.log, keyed.assess(), now_ms=keyed.now_ms)
    (rewritten,) = Compaction(OsDisk(), job).rewrite()
    keyed.log.truncate_to(1, now_ms=keyed.now_ms)
    keyed.put((b"c", b"1"))
    keyed.put((b"d", b"1"))
    keyed.roll()
    assert keyed.log.segments.first.size == size
    assert not install(keyed.log, rewritten, now_ms=keyed.now_ms)
    assert list(keyed.directory.glob("*.cleaned")) == []
    assert keyed.pairs() == [(0, b"a", b"1"), (1, b"c", b"1"), (2, b"d", b"1")]


def test_results_can_be_discarded(keyed: KeyedLog) -> None:
    keyed.put_by(7, (b"a", b"1"), (b"a", b"2"), transactional=True)
    keyed.end(7, ABORT)
    keyed.roll()
    (rewritten,) = Compaction(
        OsDisk(), plan(keyed.log, keyed.assess(), now_ms=keyed.now_ms)
    ).rewrite()
    assert len(list(keyed.directory.glob("*.cleaned"))) == 4
    discard(keyed.log.disk, keyed.log.directory, rewritten)
    assert list(keyed.directory.glob("*.cleaned")) == []


def test_pace_hears_of_every_byte_and_can_end_the_run(keyed: KeyedLog) -> None:
    for number in range(100):
        keyed.put((b"k", b"%d" % number))
    keyed.roll()
    heard: list[int] = []

    def stop(count: int) -> None:
        heard.append(count)
        if len(heard) > 5:
            raise InterruptedError

    small = CompactionLimits(io_buffer_bytes=1000)
    with pytest.raises(InterruptedError):
        keyed.compact(small, stop)
    assert list(keyed.directory.glob("*.cleaned")) == []
    heard.clear()
    progress = keyed.compact(small, heard.append)
    assert sum(heard) == progress.bytes_read
    assert max(heard) <= 1000


def test_batches_larger_than_the_buffer(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1" * 5000), (b"b", b"2" * 5000))
    keyed.put((b"a", b"3" * 9000))
    keyed.roll()
    keyed.compact(CompactionLimits(io_buffer_bytes=1))
    assert [offset for offset, _, _ in keyed.pairs()] == [1, 2]


def test_snapshots_of_merged_segments_go(keyed: KeyedLog) -> None:
    for number in range(5):
        keyed.put_by(7, (b"a", b"%d" % number))
        keyed.roll()
    assert len(keyed.log.snapshots.offsets) == 5
    keyed.compact()
    assert keyed.log.snapshots.offsets == {5}
    keyed.reopen(checkpointed=Checkpointed(recovery_point=5))
    assert keyed.sequence_ends() == {7: (0, 4)}


def test_an_index_written_later_lands_beside_its_segment(keyed: KeyedLog) -> None:
    keyed.put((b"a", b"1"), (b"a", b"2"))
    keyed.put_by(7, (b"b", b"1"), transactional=True)
    keyed.end(7, COMMIT)
    keyed.roll()
    keyed.compact()
    index = keyed.log.segments.first.txn_index
    assert index.path == f"{keyed.directory}/00000000000000000000.txnindex"


def test_followers_take_what_a_compacted_leader_has(keyed: KeyedLog, tmp_path: Path) -> None:
    keyed.put_by(7, (b"a", b"1"), transactional=True)
    keyed.end(7, COMMIT)
    keyed.put((b"a", b"2"))
    keyed.compact_all()
    follower = KeyedLog(tmp_path / "follower-0")
    for batch in keyed.batches():
        follower.log.append_as_follower(batch.content, now_ms=keyed.now_ms)
    assert follower.log.log_end_offset == keyed.log.log_end_offset
    assert follower.sequence_ends() == keyed.sequence_ends()
    assert follower.table() == {b"a": b"2"}


def test_a_control_batch_that_another_broker_has_emptied(keyed: KeyedLog) -> None:
    marker = build_marker(COMMIT, producer_id=7, producer_epoch=0, coordinator_epoch=1, timestamp=5)
    emptied = empty_batch(read_header(marker))
    keyed.log.append_as_follower(emptied, now_ms=keyed.now_ms)
    keyed.put((b"a", b"1"))
    keyed.reopen()
    assert keyed.log.log_end_offset == 2
    keyed.compact_all()
    assert [batch.header.base_offset for batch in keyed.batches()] == [1]


def test_a_reader_of_a_replaced_segment_reads_on_through_the_next_replacement(
    keyed: KeyedLog,
) -> None:
    keyed.put((b"a", b"1"), (b"b", b"1"))
    first = keyed.log.read(0, 1000, 2)
    assert isinstance(first, FileSlice)
    before = first.copy()
    for value in (b"2", b"3"):
        keyed.put((b"a", value))
        keyed.compact_all()
        keyed.now_ms += 1
    first.file.close()
    assert first.copy() == before


def test_records_without_time_are_no_younger_after_compaction(tmp_path: Path) -> None:
    keyed = KeyedLog(tmp_path)
    for value in (b"1", b"2"):
        keyed.put((b"a", value), timestamp=-1)
    keyed.roll()
    written = keyed.log.segments.first
    keyed.log.disk.set_modified(written.log.path, 1_600_000_000_000)
    keyed.compact()
    assert keyed.log.segments.first is not written
    assert keyed.log.segments.first.newest_ms == 1_600_000_000_000
