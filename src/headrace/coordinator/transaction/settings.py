"""The settings of the transaction coordinator, under Kafka's names and with Kafka's defaults."""

from dataclasses import dataclass

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """One field per broker setting; the comment names it."""

    max_timeout_ms: int = 15 * _MINUTE_MS  # transaction.max.timeout.ms
    # transaction.abort.timed.out.transaction.cleanup.interval.ms
    abort_check_interval_ms: int = 10_000
    id_expiration_ms: int = 7 * 24 * 60 * _MINUTE_MS  # transactional.id.expiration.ms
    # transaction.remove.expired.transaction.cleanup.interval.ms
    expiry_check_interval_ms: int = 60 * _MINUTE_MS
    commit_timeout_ms: int = 30_000  # request.timeout.ms
