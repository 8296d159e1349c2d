"""State of the broker's process, from starting to shutting down. Set by `main`, read by the pages (pure)."""

from enum import IntEnum


class BrokerState(IntEnum):
    """Kafka's states of a broker, with Kafka's numbers, which dashboards show."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


class Lifecycle:
    """Where the broker is in its life: whoever starts and stops it says so here."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = BrokerState.STARTING
