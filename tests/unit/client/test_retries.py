"""Which errors pass, and for whom."""

import pytest

from headrace.client.retries import (
    BlockingTime,
    passes_for_admin,
    passes_for_reader,
    passes_for_writer,
)
from headrace.wire.error_code import ErrorCode


@pytest.mark.parametrize("error", list(ErrorCode))
def test_who_tries_again_goes_by_kafkas_list_but_for_what_is_named_here(error: ErrorCode) -> None:
    answers = {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }
    is_rebalance = error is ErrorCode.REBALANCE_IN_PROGRESS
    assert passes_for_admin(error) == (is_rebalance or (error.retriable and error not in answers))
    assert passes_for_reader(error) == (error.retriable and error is not ErrorCode.CORRUPT_MESSAGE)
    assert passes_for_writer(error) == error.retriable


class Slept(BlockingTime):
    """Time that passes while somebody sleeps."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now_s(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_patience_ends_when_no_pause_fits_in_any_more() -> None:
    time = Slept()
    patience = time.patience(1.0, retry_after_s=0.25)
    attempts = 1
    while not patience.is_over():
        patience.pause()
        attempts += 1
    assert attempts == 5
    assert time.seconds == 101.0
