"""Expiry of transactional ids that nobody has used for long. Pure."""

from headrace.coordinator.transaction.event_context import EventContext
from headrace.coordinator.transaction.events import ExpiryTimer


def expire(context: EventContext) -> None:
    """The timer fired: write tombstones, and set the timer again. Open and decided transactions never expire."""
    context.set_timer(ExpiryTimer(), context.settings.expiry_check_interval_ms)
    context.atomic = False
    unused_since_ms = context.now_ms - context.settings.id_expiration_ms
    for transactional_id, transaction in context.state.transactions.items():
        if transaction.status.is_idle and transaction.last_update_ms <= unused_since_ms:
            context.store(transactional_id, None)
