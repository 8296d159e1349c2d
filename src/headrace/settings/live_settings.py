"""The broker's settings as they are now: replaced as a whole when a dynamic config changes."""

import logging
from collections.abc import Callable, Mapping

from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.dynamic import apply_dynamic

_logger = logging.getLogger(__name__)


class LiveSettings:
    """Whoever needs the latest value reads `current` each time; whoever must act on a change listens."""

    __slots__ = ("_listeners", "current", "rejected")

    def __init__(self, settings: BrokerSettings) -> None:
        self.current = settings
        # one sentence for each dynamic config that breaks a rule here and is not in force
        self.rejected: tuple[str, ...] = ()
        self._listeners: list[Callable[[BrokerSettings], None]] = []

    def listen(self, listener: Callable[[BrokerSettings], None]) -> None:
        """Be told of each change."""
        self._listeners.append(listener)

    def apply_dynamic(self, *, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """The cluster's dynamic configs for all brokers, and for this one. A value that breaks a rule is left out."""
        before = self.rejected
        self.current, self.rejected = apply_dynamic(self.current, default=default, broker=broker)
        for sentence in self.rejected:
            if sentence not in before:
                _logger.error("%s; change or delete that config", sentence)
        for listener in self._listeners:
            listener(self.current)
