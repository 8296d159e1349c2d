"""What an append yields: a place in the log, or a refusal with Kafka's error code. Both are values."""

from typing import NamedTuple

from headrace.records.batch_view import NO_TIMESTAMP
from headrace.wire.error_code import ErrorCode


class Appended(NamedTuple):
    """The batch is in the log, now or since an earlier try of the same producer."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int = NO_TIMESTAMP
    duplicate: bool = False


class RecordError(NamedTuple):
    """What is wrong with one record of a refused batch."""

    batch_index: int
    message: str


class Refused(NamedTuple):
    """The batch was not taken; nothing has changed."""

    error_code: ErrorCode
    message: str
    record_errors: tuple[RecordError, ...] = ()
