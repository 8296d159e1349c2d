"""What a partition log has to know of its topic's configuration. Names and defaults are Kafka's."""

from dataclasses import dataclass, field

_FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Immutable; a changed configuration is a new object given to the log."""

    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * 24 * 3600 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3600 * 1000
    retention_bytes: int = -1
    cleanup_delete: bool = True
    cleanup_compact: bool = False
    delete_retention_ms: int = 24 * 3600 * 1000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = _FOREVER
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1024 * 1024 + 12
    compression_type: str = "producer"
    compression_level: int | None = None
    log_append_time: bool = False
    timestamp_before_max_ms: int = _FOREVER
    timestamp_after_max_ms: int = 3600 * 1000
    flush_messages: int = _FOREVER
    flush_ms: int = _FOREVER
    file_delete_delay_ms: int = 60_000
    producer_id_expiration_ms: int = 24 * 3600 * 1000

    plain_max_bytes: int = field(init=False, repr=False, compare=False)
    """The largest batch of which the header alone tells that it is taken as it is; -1 if none is."""
    max_segment_ms: int = field(init=False, repr=False, compare=False)
    """When the active segment is rolled at the latest: only sealed ones can be compacted."""
    min_segment_ms: int = field(init=False, repr=False, compare=False)
    """When it is rolled at the earliest, exclusive: by how much earlier, within the jitter, differs between segments."""

    def __post_init__(self) -> None:
        assert self.segment_bytes > 0
        assert self.segment_index_bytes >= 24, "an index must hold at least two entries"
        looks_inside = self.cleanup_compact or self.timestamp_before_max_ms != _FOREVER
        is_as_sent = self.compression_type == "producer" and not self.log_append_time
        plain_max_bytes = -1
        if is_as_sent and not looks_inside:
            plain_max_bytes = min(self.max_message_bytes, self.segment_bytes)
        max_segment_ms = self.segment_ms
        if self.cleanup_compact and self.max_compaction_lag_ms > 0:
            max_segment_ms = min(self.segment_ms, self.max_compaction_lag_ms)
        # Frozen, and still no work for each batch.
        object.__setattr__(self, "plain_max_bytes", plain_max_bytes)
        object.__setattr__(self, "max_segment_ms", max_segment_ms)
        jitter_ms = min(self.segment_jitter_ms, max_segment_ms)
        object.__setattr__(self, "min_segment_ms", max_segment_ms - jitter_ms)
