"""The configuration of one topic as typed attributes: what partitions and their logs go by.

Immutable; a changed configuration is a new object. Attribute names are Kafka's with underscores.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from headrace.log.log_config import LogConfig
from headrace.settings.definitions.value_type import Value
from headrace.settings.resolution import topic_values

_SMALLEST_INDEX_BYTES = 24  # two entries of the time index


@dataclass(frozen=True, init=False)
class TopicConfig:
    """A topic's own configs over the defaults that its broker gives."""

    cleanup_policy: frozenset[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    max_compaction_lag_ms: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    def __init__(self, overrides: Mapping[str, str], values: Mapping[str, Value]) -> None:
        """`overrides` are the topic's own texts, `values` the broker's settings in force."""
        resolved: dict[str, object] = {**topic_values(overrides, values)}
        policy = resolved["cleanup.policy"]
        assert isinstance(policy, tuple)
        resolved["cleanup.policy"] = frozenset(policy)
        if resolved["internal.segment.bytes"] is not None:
            resolved["segment.bytes"] = resolved["internal.segment.bytes"]
        for field in fields(self):
            object.__setattr__(self, field.name, resolved[field.name.replace("_", ".")])

    @property
    def compression_level(self) -> int | None:
        """The level for `compression_type`; None leaves it to the codec's library."""
        match self.compression_type:
            case "gzip":
                return self.compression_gzip_level if self.compression_gzip_level > 0 else None
            case "lz4":
                return self.compression_lz4_level
            case "zstd":
                return self.compression_zstd_level
            case _:
                return None

    def to_log_config(self, *, producer_id_expiration_ms: int) -> LogConfig:
        """What the partition's log needs of it."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            segment_jitter_ms=self.segment_jitter_ms,
            segment_index_bytes=max(self.segment_index_bytes, _SMALLEST_INDEX_BYTES),
            index_interval_bytes=self.index_interval_bytes,
            retention_ms=self.retention_ms,
            retention_bytes=self.retention_bytes,
            cleanup_delete="delete" in self.cleanup_policy,
            cleanup_compact="compact" in self.cleanup_policy,
            delete_retention_ms=self.delete_retention_ms,
            min_compaction_lag_ms=self.min_compaction_lag_ms,
            max_compaction_lag_ms=self.max_compaction_lag_ms,
            min_cleanable_dirty_ratio=self.min_cleanable_dirty_ratio,
            max_message_bytes=self.max_message_bytes,
            compression_type=self.compression_type,
            compression_level=self.compression_level,
            log_append_time=self.message_timestamp_type == "LogAppendTime",
            timestamp_before_max_ms=self.message_timestamp_before_max_ms,
            timestamp_after_max_ms=self.message_timestamp_after_max_ms,
            flush_messages=self.flush_messages,
            flush_ms=self.flush_ms,
            file_delete_delay_ms=self.file_delete_delay_ms,
            producer_id_expiration_ms=producer_id_expiration_ms,
        )
