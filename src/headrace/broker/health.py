"""Whether the broker serves, and if not, why (pure)."""

from dataclasses import dataclass
from enum import IntEnum

from headrace.broker.metrics.group_families import GroupCounts
from headrace.log.log_dirs import LogDirs


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`status` is `serving`, or what keeps the broker from it; `reasons` also names what is wrong while it serves."""

    status: str
    reasons: tuple[str, ...] = ()

    @property
    def is_serving(self) -> bool:
        """Whether clients should be sent here."""
        return self.status == "serving"


def check_health(
    lifecycle: Lifecycle,
    log_dirs: LogDirs,
    groups: GroupCounts | None = None,
    rejected_settings: tuple[str, ...] = (),
) -> Health:
    """The broker as it is right now. `rejected_settings`: a sentence for each dynamic config that is not in force."""
    failed = (
        *(f"log directory {path} is offline: {why}" for path, why in log_dirs.offline.items()),
        *rejected_settings,
    )
    for partition, reason in (groups.failed_partitions if groups is not None else {}).items():
        failed += (
            f"__consumer_offsets-{partition} cannot be loaded, its groups are not served: {reason};"
            " docs/operating/README.md says how to repair it",
        )
    if lifecycle.state != BrokerState.RUNNING:
        return Health(status=lifecycle.state.name.lower(), reasons=failed)
    if not log_dirs.online:
        return Health(status="no_log_directory", reasons=failed)
    return Health(status="serving", reasons=failed)
