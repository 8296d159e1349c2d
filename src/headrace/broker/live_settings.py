"""The broker's settings as they are now: replaced as a whole when a dynamic config changes."""

from collections.abc import Callable, Mapping

from headrace.broker.settings.broker_settings import BrokerSettings


class LiveSettings:
    """Whoever needs the latest value reads `current` each time; whoever must act on a change listens."""

    __slots__ = ("_listeners", "current")

    def __init__(self, settings: BrokerSettings) -> None:
        self.current = settings
        self._listeners: list[Callable[[BrokerSettings], None]] = []

    def listen(self, listener: Callable[[BrokerSettings], None]) -> None:
        """Be told of each change."""
        self._listeners.append(listener)

    def apply_dynamic(self, *, default: Mapping[str, str], broker: Mapping[str, str]) -> None:
        """The cluster's dynamic configs for all brokers, and for this one."""
        self.current = self.current.with_dynamic(default=default, broker=broker)
        for listener in self._listeners:
            listener(self.current)
