import pytest

from headrace.log.producers.producer_snapshot import decode_snapshot, encode_snapshot
from headrace.log.producers.producer_state import (
    NOT_VERIFIED,
    EndedTxn,
    KnownBatch,
    ProducerState,
    Verification,
)
from headrace.log.segments.txn_index import AbortedTxn
from headrace.records.batch_view import BatchHeader, read_header, stamp
from headrace.records.control_batch import ControlType
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal
from tests.support.log_samples import NOW_MS, make_marker, make_producer_batch, producers_of

MAX = 2**31 - 1
PRODUCER = 11


def header(
    sequence: int,
    count: int = 1,
    *,
    offset: int = 0,
    epoch: int = 0,
    transactional: bool = False,
    producer_id: int = PRODUCER,
    timestamp: int = NOW_MS,
) -> BatchHeader:
    batch = make_producer_batch(
        producer_id, sequence, count, epoch=epoch, transactional=transactional, timestamp=timestamp
    )
    stamp(batch, 0, offset, 0)
    return read_header(batch)


def marker_at(offset: int, *, epoch: int = 0, producer_id: int = PRODUCER) -> BatchHeader:
    marker = make_marker(ControlType.COMMIT, producer_id, epoch=epoch)
    stamp(marker, 0, offset, 0)
    return read_header(marker)


def code_of(found: object) -> ErrorCode:
    assert isinstance(found, Refusal), found
    return found.error_code


@pytest.fixture
def state() -> ProducerState:
    return ProducerState()


def written(state: ProducerState, *headers: BatchHeader) -> None:
    for batch in headers:
        assert state.check(batch, NOT_VERIFIED) is None
        state.note_data(batch)


def unstable(state: ProducerState) -> int | None:
    return state.first_unstable_offset


# ---- sequences


@pytest.mark.parametrize("sequence", [0, 5, MAX])
def test_an_unknown_producer_may_start_anywhere(state: ProducerState, sequence: int) -> None:
    assert state.check(header(sequence)) is None


def test_the_next_sequence_is_taken_and_others_are_not(state: ProducerState) -> None:
    written(state, header(0, 3), header(3, 2, offset=3))
    assert state.check(header(5)) is None
    for wrong in (4, 6, 100, MAX):
        assert code_of(state.check(header(wrong))) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_retry_of_the_last_six_batches_is_recognised(state: ProducerState) -> None:
    for number in range(8):
        written(state, header(2 * number, 2, offset=10 * number))
    for number in range(2, 8):
        known = state.check(header(2 * number, 2))
        assert isinstance(known, KnownBatch)
        assert (known.base_offset, known.last_offset) == (10 * number, 10 * number + 1)
    for number in range(2):
        refused = state.check(header(2 * number, 2))
        assert code_of(refused) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_retry_in_another_cut_is_no_retry(state: ProducerState) -> None:
    written(state, header(0, 3))
    assert code_of(state.check(header(0, 2))) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_sequences_wrap(state: ProducerState) -> None:
    written(state, header(MAX - 1, 1), header(MAX, 3))
    entry = state.entry(PRODUCER)
    assert entry is not None
    assert entry.last_sequence == 1
    assert isinstance(state.check(header(MAX, 3)), KnownBatch)
    assert state.check(header(2)) is None
    assert code_of(state.check(header(0))) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


# ---- epochs


def test_an_older_epoch_is_fenced_even_as_a_retry(state: ProducerState) -> None:
    written(state, header(0, epoch=1))
    written(state, header(0, epoch=2))
    assert code_of(state.check(header(0, epoch=1))) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_starts_at_zero_and_forgets_old_batches(state: ProducerState) -> None:
    written(state, header(0, 3, epoch=1))
    assert code_of(state.check(header(3, epoch=2))) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    written(state, header(0, epoch=2, offset=3))
    entry = state.entry(PRODUCER)
    assert entry is not None
    assert [known.base_offset for known in entry.batches] == [3]


def test_after_a_marker_of_the_same_epoch_sequences_go_on(state: ProducerState) -> None:
    written(state, header(0, 2, transactional=True))
    state.note_marker(marker_at(2), ControlType.COMMIT, 0)
    assert state.check(header(2, transactional=True), NOT_VERIFIED) is None
    assert isinstance(state.check(header(0, 2, transactional=True)), KnownBatch)


def test_after_a_marker_that_raised_the_epoch_they_start_anew(state: ProducerState) -> None:
    written(state, header(0, 2, transactional=True))
    state.note_marker(marker_at(2, epoch=1), ControlType.COMMIT, 0)
    assert code_of(state.check(header(2))) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert code_of(state.check(header(2, epoch=1))) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(header(0, epoch=1)) is None


def test_markers_are_fenced_by_producer_and_coordinator_epoch(state: ProducerState) -> None:
    assert state.check_marker(PRODUCER, 0, 0) is None
    written(state, header(0, epoch=3, transactional=True))
    assert code_of(state.check_marker(PRODUCER, 2, 0)) == ErrorCode.INVALID_PRODUCER_EPOCH
    state.note_marker(marker_at(1, epoch=3), ControlType.COMMIT, 8)
    fenced = state.check_marker(PRODUCER, 3, 7)
    assert code_of(fenced) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert state.check_marker(PRODUCER, 4, 8) is None


# ---- transactions


def test_an_open_transaction_takes_only_its_own_batches(state: ProducerState) -> None:
    written(state, header(0, transactional=True))
    assert code_of(state.check(header(1))) == ErrorCode.INVALID_TXN_STATE
    assert state.check(header(1, transactional=True)) is None


def test_the_first_unstable_offset_is_held_until_the_marker_is_replicated(
    state: ProducerState,
) -> None:
    assert unstable(state) is None
    written(state, header(0, 2, offset=5, transactional=True, producer_id=1))
    written(state, header(0, 2, offset=7, transactional=True, producer_id=2))
    written(state, header(2, 2, offset=9, transactional=True, producer_id=1))
    assert unstable(state) == 5
    ended = state.note_marker(marker_at(11, producer_id=1), ControlType.COMMIT, 0)
    assert ended == EndedTxn(1, 5, 11, aborted=False)
    assert unstable(state) == 5
    state.on_high_watermark(11)
    assert unstable(state) == 5
    state.on_high_watermark(12)
    assert unstable(state) == 7
    state.note_marker(marker_at(12, producer_id=2), ControlType.ABORT, 0)
    state.on_high_watermark(100)
    assert unstable(state) is None


def test_an_aborted_transaction_carries_the_last_stable_offset(state: ProducerState) -> None:
    written(state, header(0, offset=5, transactional=True, producer_id=1))
    written(state, header(0, offset=6, transactional=True, producer_id=2))
    ended = state.note_marker(marker_at(7, producer_id=2), ControlType.ABORT, 0)
    assert ended is not None
    assert ended.aborted
    assert state.aborted_txn(ended) == AbortedTxn(2, 6, 7, 5)
    ended = state.note_marker(marker_at(8, producer_id=1), ControlType.ABORT, 0)
    assert ended is not None
    assert state.aborted_txn(ended) == AbortedTxn(1, 5, 8, 9)


def test_a_marker_without_a_transaction_ends_none(state: ProducerState) -> None:
    assert state.note_marker(marker_at(3), ControlType.ABORT, 4) is None
    entry = state.entry(PRODUCER)
    assert entry is not None
    assert (entry.coordinator_epoch, entry.last_sequence, entry.last_offset) == (4, -1, -1)


# ---- expiry and snapshots


def test_silent_producers_expire_but_not_with_an_open_transaction(state: ProducerState) -> None:
    written(state, header(0, producer_id=1, timestamp=1000))
    written(state, header(0, producer_id=2, timestamp=1000, transactional=True, offset=1))
    written(state, header(0, producer_id=3, timestamp=1001, offset=2))
    assert state.expire(1999, 1000) == 0
    assert state.expire(2000, 1000) == 1
    assert {entry.producer_id for entry in state} == {2, 3}
    assert state.check(header(50, producer_id=1)) is None, "as if never seen"


def test_a_snapshot_keeps_what_a_restart_needs(state: ProducerState) -> None:
    written(state, header(0, 3, producer_id=1), header(3, 2, producer_id=1, offset=3))
    written(state, header(MAX, 2, producer_id=2, offset=5, transactional=True))
    state.note_marker(marker_at(7, producer_id=3, epoch=4), ControlType.COMMIT, 9)
    content = encode_snapshot(state)
    assert len(content) == 2 + 4 + 4 + 3 * 46 + 4 + 40, "one batch before the last of its producer"
    again = decode_snapshot(content)
    assert producers_of(again) == producers_of(state)
    assert again.first_unstable_offset == 5
    assert isinstance(again.check(header(3, 2, producer_id=1)), KnownBatch)
    assert isinstance(again.check(header(MAX, 2, producer_id=2, transactional=True)), KnownBatch)
    assert encode_snapshot(again) == content


def test_clear(state: ProducerState) -> None:
    written(state, header(0, transactional=True))
    state.clear()
    assert len(state) == 0
    assert unstable(state) is None


def test_a_marker_of_version_2_must_raise_the_epoch_while_the_transaction_is_open(
    state: ProducerState,
) -> None:
    """A marker of the transaction before, which comes late, must not end this one."""
    written(state, header(0, epoch=1, transactional=True))
    late = state.check_marker(PRODUCER, 1, 0, has_epoch_bump=True)
    assert code_of(late) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert state.check_marker(PRODUCER, 1, 0) is None, "version 1 ends it in its own epoch"
    assert state.check_marker(PRODUCER, 2, 0, has_epoch_bump=True) is None
    state.note_marker(marker_at(1, epoch=2), ControlType.COMMIT, 0)
    assert state.check_marker(PRODUCER, 2, 0, has_epoch_bump=True) is None, "a repetition"


def test_the_time_of_the_oldest_transaction_is_that_of_its_producers_last_batch(
    state: ProducerState,
) -> None:
    assert state.oldest_txn_timestamp == -1
    written(
        state,
        header(0, transactional=True, timestamp=5),
        header(0, offset=1, transactional=True, producer_id=12, timestamp=6),
        header(1, offset=2, transactional=True, timestamp=7),
    )
    assert state.oldest_txn_timestamp == 7
    state.note_marker(marker_at(3), ControlType.COMMIT, 0)
    assert state.oldest_txn_timestamp == 6


# ---- verification


def verification(
    state: ProducerState, batch: BatchHeader, *, is_implicit: bool
) -> Verification | None:
    id_and_epoch = batch.producer_id, batch.producer_epoch
    return state.verification(*id_and_epoch, batch.base_sequence, NOW_MS, is_implicit=is_implicit)


def test_a_transaction_that_is_not_open_needs_a_verification(state: ProducerState) -> None:
    batch = header(0, transactional=True)
    assert code_of(state.check(batch)) == ErrorCode.INVALID_TXN_STATE
    verified = verification(state, batch, is_implicit=False)
    assert verified is not None
    assert state.check(batch, verified) is None
    state.note_data(batch)
    assert verification(state, header(1, transactional=True), is_implicit=False) is None
    assert state.check(header(1, transactional=True)) is None


def test_a_marker_between_verification_and_append_makes_it_void(state: ProducerState) -> None:
    batch = header(0, transactional=True)
    verified = verification(state, batch, is_implicit=False)
    state.note_marker(marker_at(0), ControlType.ABORT, 0)
    assert code_of(state.check(batch, verified)) == ErrorCode.INVALID_TXN_STATE
    again = verification(state, batch, is_implicit=False)
    assert again is not verified
    assert state.check(batch, again) is None


def test_an_open_transaction_of_an_older_epoch_does_not_speak_for_a_newer_one(
    state: ProducerState,
) -> None:
    written(state, header(0, transactional=True))
    newer = header(0, epoch=1, transactional=True)
    assert code_of(state.check(newer)) == ErrorCode.INVALID_TXN_STATE
    assert verification(state, newer, is_implicit=False) is not None


def test_the_lowest_sequence_that_waits_for_verification_comes_first(state: ProducerState) -> None:
    second, first = header(4, 2, transactional=True), header(2, 2, transactional=True)
    verified = verification(state, second, is_implicit=False)
    assert verification(state, first, is_implicit=False) is verified
    assert code_of(state.check(second, verified)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert state.check(first, verified) is None
    bumped = header(0, epoch=1, transactional=True)
    assert verification(state, bumped, is_implicit=False) is verified
    assert state.check(bumped, verified) is None


def test_under_version_2_a_transaction_starts_at_sequence_0(state: ProducerState) -> None:
    batch = header(3, transactional=True)
    verified = verification(state, batch, is_implicit=True)
    assert code_of(state.check(batch, verified)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_verification_that_never_ends_is_forgotten(state: ProducerState) -> None:
    batch = header(0, transactional=True)
    verified = verification(state, batch, is_implicit=False)
    state.expire(NOW_MS + 99, 100)
    assert state.check(batch, verified) is None
    state.expire(NOW_MS + 100, 100)
    assert code_of(state.check(batch, verified)) == ErrorCode.INVALID_TXN_STATE


def test_batches_of_coordinators_have_an_epoch_and_a_verification_and_no_sequence(
    state: ProducerState,
) -> None:
    offsets = header(-1, epoch=3, transactional=True)
    refused = state.check(offsets, from_client=False)
    assert code_of(refused) == ErrorCode.INVALID_TXN_STATE
    verified = verification(state, offsets, is_implicit=True)
    assert state.check(offsets, verified, from_client=False) is None
    state.note_data(offsets)
    assert state.check(offsets, from_client=False) is None
    older = header(-1, epoch=2, transactional=True)
    fenced = state.check(older, from_client=False)
    assert code_of(fenced) == ErrorCode.INVALID_PRODUCER_EPOCH
