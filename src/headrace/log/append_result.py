"""Place of appended batches in the log. Batches that are not taken are a `wire.refusal.Refusal`. Both are values."""

from typing import NamedTuple

from headrace.records.batch_view import NO_TIMESTAMP


class Appended(NamedTuple):
    """The first `batches` of a list are in the log, one behind the other.

    A duplicate is one batch that the same producer has appended before.
    """

    base_offset: int
    last_offset: int
    log_append_time_ms: int = NO_TIMESTAMP
    duplicate: bool = False
    batches: int = 1
