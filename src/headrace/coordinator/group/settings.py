"""The settings of the group coordinator, under Kafka's names and with Kafka's defaults."""

from dataclasses import dataclass

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """One field per broker setting; the comment names it."""

    min_session_timeout_ms: int = 6_000  # group.min.session.timeout.ms
    max_session_timeout_ms: int = 30 * _MINUTE_MS  # group.max.session.timeout.ms
    max_size: int = 2**31 - 1  # group.max.size
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    offset_metadata_max_bytes: int = 4_096  # offset.metadata.max.bytes
    offsets_retention_ms: int = 7 * 24 * 60 * _MINUTE_MS  # offsets.retention.minutes
    offsets_retention_check_interval_ms: int = 10 * _MINUTE_MS  # the same name, .ms
    offsets_commit_timeout_ms: int = 5_000  # offsets.commit.timeout.ms
    # Not a setting of Kafka's either: how long a new member's first JoinGroup may stay parked.
    new_member_join_timeout_ms: int = 5 * _MINUTE_MS
