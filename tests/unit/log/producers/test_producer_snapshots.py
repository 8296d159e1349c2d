import pytest

from headrace.errors import CorruptBatch
from headrace.log.producers.producer_snapshot import decode_snapshot, encode_snapshot
from headrace.log.producers.producer_snapshots import ProducerSnapshots
from headrace.log.producers.producer_state import ProducerState
from headrace.records.batch_view import read_header
from headrace.testing.memory_disk import MemoryDisk
from tests.support.log_samples import make_producer_batch, producers_of


def state_of(*producer_ids: int) -> ProducerState:
    state = ProducerState()
    for producer_id in producer_ids:
        state.note_data(read_header(make_producer_batch(producer_id, 0)))
    return state


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_directory("/d")
    return disk


@pytest.fixture
def snapshots(disk: MemoryDisk) -> ProducerSnapshots:
    snapshots = ProducerSnapshots(disk, "/d")
    for number, offset in enumerate((10, 20, 30), 1):
        snapshots.write(offset, state_of(*range(number)))
    return snapshots


@pytest.mark.parametrize(
    ("end_offset", "found"), [(9, 0), (10, 10), (19, 10), (20, 20), (30, 30), (99, 30)]
)
def test_the_newest_before_an_offset_is_loaded(
    snapshots: ProducerSnapshots, end_offset: int, found: int
) -> None:
    offset, state = snapshots.load_latest(end_offset)
    assert offset == found
    assert len(state) == found // 10


def test_a_damaged_one_is_removed_and_an_older_one_used(
    disk: MemoryDisk, snapshots: ProducerSnapshots
) -> None:
    disk.open(snapshots.path(30)).truncate(20)
    disk.remove(snapshots.path(20))
    offset, state = snapshots.load_latest(40)
    assert offset == 10
    assert producers_of(state) == producers_of(state_of(0))
    assert not disk.exists(snapshots.path(30))


def test_removal(disk: MemoryDisk, snapshots: ProducerSnapshots) -> None:
    snapshots.remove_after(20)
    assert snapshots.offsets == {10, 20}
    snapshots.remove(15)
    snapshots.remove_all()
    assert disk.list_files("/d") == []


@pytest.mark.parametrize(
    ("first_offset", "left"),
    [(5, {10, 20, 30}), (10, {10, 20, 30}), (20, {20, 30}), (25, {20, 30}), (99, {30})],
)
def test_superfluous_ones_go_with_the_segments(
    snapshots: ProducerSnapshots, first_offset: int, left: set[int]
) -> None:
    snapshots.remove_superfluous(first_offset)
    assert snapshots.offsets == left


def test_a_full_disk_costs_a_snapshot_and_nothing_else(
    disk: MemoryDisk, snapshots: ProducerSnapshots
) -> None:
    disk.capacity_bytes = disk.used_bytes
    snapshots.write(40, state_of(1))
    assert snapshots.load_latest(50)[0] == 30


def test_a_snapshot_that_was_synced_is_not_kept_open(
    disk: MemoryDisk, snapshots: ProducerSnapshots
) -> None:
    for sync in snapshots.syncers():
        sync()
    assert disk.syncs == 3
    assert not disk.opened


def test_every_damaged_byte_is_noticed() -> None:
    state = state_of(1, 2)
    for sequence in range(1, 4):
        state.note_data(read_header(make_producer_batch(2, sequence)))
    content = encode_snapshot(state)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x01
        with pytest.raises(CorruptBatch):
            decode_snapshot(bytes(damaged))
    for size in range(len(content)):
        with pytest.raises(CorruptBatch):
            decode_snapshot(content[:size])


def test_all_batches_that_are_remembered_are_in_it() -> None:
    state = state_of(1, 2)
    for sequence in range(1, 9):
        state.note_data(read_header(make_producer_batch(2, sequence)))
    read = decode_snapshot(encode_snapshot(state))
    for producer_id in (1, 2):
        entry, known = state.entry(producer_id), read.entry(producer_id)
        assert entry is not None
        assert known is not None
        assert list(known.batches) == list(entry.batches)


def test_an_empty_state_has_a_snapshot_too() -> None:
    assert len(decode_snapshot(encode_snapshot(ProducerState()))) == 0
