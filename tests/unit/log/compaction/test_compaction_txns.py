from collections.abc import Iterator

from headrace.log.compaction.compaction_txns import CompactedTxns
from headrace.log.segments.txn_index import AbortedTxn
from headrace.records.batch_builder import BatchOptions, build_batch, records_at
from headrace.records.batch_view import BatchHeader, read_header
from headrace.records.control_batch import ControlType


def data(offset: int, producer_id: int, *, transactional: bool = True) -> BatchHeader:
    options = BatchOptions(producer_id=producer_id, transactional=transactional)
    return read_header(build_batch(records_at(offset, 0, [(b"k", b"v")]), options))


def fate(
    txns: CompactedTxns, offset: int, producer_id: int, control_type: ControlType | None
) -> tuple[bool, AbortedTxn | None]:
    return txns.on_marker(data(offset, producer_id), control_type)


def test_aborted_data_is_recognised_and_its_marker_kept_with_its_entry() -> None:
    aborted = AbortedTxn(7, 2, 5, 6)
    txns = CompactedTxns([aborted])
    assert not txns.on_data(data(1, 7, transactional=False))
    assert txns.on_data(data(2, 7))
    assert not txns.on_data(data(3, 8))
    assert fate(txns, 5, 7, ControlType.ABORT) == (False, aborted)
    assert not txns.on_data(data(6, 7)), "the producer's next transaction"


def test_markers_without_data_are_idle() -> None:
    txns = CompactedTxns([AbortedTxn(7, 2, 5, 6)])
    assert fate(txns, 5, 7, ControlType.ABORT) == (True, None)
    assert fate(txns, 6, 8, ControlType.COMMIT) == (True, None)
    assert fate(txns, 7, 9, None) == (True, None), "emptied by an earlier compaction"


def test_a_commit_is_kept_with_its_data() -> None:
    txns = CompactedTxns([])
    txns.on_data(data(1, 7))
    assert fate(txns, 2, 7, ControlType.COMMIT) == (False, None)
    assert fate(txns, 3, 7, ControlType.COMMIT) == (True, None)


def test_an_abort_whose_entry_is_missing_is_kept_with_its_data() -> None:
    txns = CompactedTxns([])
    assert not txns.on_data(data(1, 7))
    assert fate(txns, 2, 7, ControlType.ABORT) == (False, None)


def test_unknown_control_records_are_kept() -> None:
    assert CompactedTxns([]).on_marker(data(1, 7), 5) == (False, None)


def test_transactions_that_overlap_in_any_order() -> None:
    # Entries come in the order of markers; the one that started first ended last.
    outer, inner, after = AbortedTxn(1, 0, 9, 10), AbortedTxn(2, 3, 5, 0), AbortedTxn(2, 12, 14, 15)
    txns = CompactedTxns([inner, outer, after])
    assert txns.on_data(data(0, 1))
    assert txns.on_data(data(3, 2))
    assert fate(txns, 5, 2, ControlType.ABORT) == (False, inner)
    assert not txns.on_data(data(6, 2))
    assert fate(txns, 7, 2, ControlType.COMMIT) == (False, None)
    assert txns.on_data(data(8, 1))
    assert fate(txns, 9, 1, ControlType.ABORT) == (False, outer)
    assert txns.on_data(data(12, 2))
    assert fate(txns, 14, 2, ControlType.ABORT) == (False, after)


def test_entries_are_taken_only_as_far_as_needed() -> None:
    taken: list[int] = []

    def entries() -> Iterator[AbortedTxn]:
        for start in range(0, 100, 10):
            taken.append(start)
            yield AbortedTxn(1, start, start + 1, start + 2)

    txns = CompactedTxns(entries())
    txns.on_data(data(20, 1))
    assert taken == [0, 10, 20]


def test_an_entry_whose_marker_is_gone_does_not_reach_further() -> None:
    txns = CompactedTxns([AbortedTxn(7, 2, 5, 6)])
    assert txns.on_data(data(2, 7))
    assert not txns.on_data(data(8, 7))
    assert fate(txns, 9, 7, ControlType.COMMIT) == (False, None)
