"""Policy of the blocking client: which errors pass by themselves, and how long an answer is waited for.

Whether an error can pass is Kafka's list, `ErrorCode.retriable`. Beside it stand here, each with its reason, the few errors
that mean something else to an administrator or to a reader of records. A request is repeated by the outermost call only: what
is asked inside an attempt is asked once, so that each attempt looks anew for the broker that can answer.
"""

from __future__ import annotations

import time
from typing import Final

from headrace.wire.error_code import ErrorCode

RETRY_AFTER_S: Final = 0.1

# Answers to an administrator, although the same request may have another result later.
_ANSWERS_TO_ADMIN: Final = frozenset(
    {
        # Whether the topic exists is often the question.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        # The controller may be carrying it out still. Repeated, the request would meet its own result.
        ErrorCode.REQUEST_TIMED_OUT,
        # Results of an election that was asked for.
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    }
)


def passes_for_admin(error: ErrorCode) -> bool:
    """Whether an administrator's request is sent again after this error."""
    if error is ErrorCode.REBALANCE_IN_PROGRESS:
        return True  # a rebalance ends by itself; only a member would have to take part in it
    return error.retriable and error not in _ANSWERS_TO_ADMIN


def passes_for_reader(error: ErrorCode) -> bool:
    """Whether a fetch is sent again after this error. A damaged batch in the log stays damaged."""
    return error.retriable and error is not ErrorCode.CORRUPT_MESSAGE


def passes_for_writer(error: ErrorCode) -> bool:
    """Whether a batch is sent again after this error."""
    return error.retriable


class BlockingTime:
    """Clock and sleep of a client that blocks its thread. Tests bring another one."""

    def now_s(self) -> float:
        """Seconds of a clock that is never set."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Block the thread."""
        time.sleep(seconds)

    def patience(self, seconds: float, *, retry_after_s: float = RETRY_AFTER_S) -> Patience:
        """A wait of so many seconds in all, from now on."""
        return Patience(self, seconds, retry_after_s)


class Patience:
    """How long something is tried again, and the pauses in between."""

    __slots__ = ("_deadline_s", "_retry_after_s", "_time")

    def __init__(self, blocking_time: BlockingTime, seconds: float, retry_after_s: float) -> None:
        self._time = blocking_time
        self._retry_after_s = retry_after_s
        self._deadline_s = blocking_time.now_s() + seconds

    def is_over(self) -> bool:
        """Whether there is no time for another attempt after a pause."""
        return self._time.now_s() + self._retry_after_s > self._deadline_s

    def pause(self) -> None:
        """Wait before the next attempt."""
        self._time.sleep(self._retry_after_s)


REAL_TIME: Final = BlockingTime()
