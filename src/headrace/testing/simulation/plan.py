"""What a seed means: how large the cluster is, what is promised, and which things go wrong how often.

Swarm testing: each seed draws a subset of the faults with rates of its own, for a run in which everything goes wrong at
once hides what a run with two faults finds.
"""

from dataclasses import dataclass, replace
from enum import Enum
from random import Random

from headrace.testing.virtual_network import NetworkWeather


class Fault(Enum):
    """What can go wrong, beside the weather on the network."""

    KILL = "kill"  # the process dies, what it wrote stays
    POWER = "power"  # the machine dies, what was not synced goes
    WIPE = "wipe"  # the process dies and comes back with an empty disk
    PAUSE = "pause"  # the process stands still and does not know it
    SPLIT = "split"  # two brokers do not hear each other, or only one of them
    STORE = "store"  # a broker does not reach the coordination store
    EXPIRE = "expire"  # the store ends a session although its owner lives
    SILENCE = "silence"  # the same, and the broker does not notice
    REMOVE = "remove"  # two other brokers take a living one for dead and remove its registration
    SEAT = "seat"  # the controller's seat is taken away
    LAG = "lag"  # a follower fetches nothing for a while
    CLOCK = "clock"  # a wall clock jumps
    BOUNCE = "bounce"  # a broker is shut down in an orderly way and started again
    ELECT = "elect"  # another replica that is in sync is made leader
    MOVE = "move"  # a partition is reassigned, or a reassignment cancelled
    DELETE = "delete"  # records are deleted from the front
    MINIMUM = "minimum"  # an operator changes the topic's min.insync.replicas
    FULL = "full"  # a disk has no room for a while
    BLACKOUT = "blackout"  # all processes die at once, and one comes back with an empty disk


# Faults that end no session: under these, no unclean election may come about even where it is allowed.
_SESSIONS_LIVE = frozenset(
    (
        Fault.SPLIT,
        Fault.REMOVE,
        Fault.SEAT,
        Fault.LAG,
        Fault.CLOCK,
        Fault.ELECT,
        Fault.MOVE,
        Fault.DELETE,
    )
)


_DRAWN_LAST = (Fault.MINIMUM, Fault.FULL, Fault.BLACKOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. Times are in virtual milliseconds."""

    seed: int
    steps: int
    broker_count: int
    replication_factor: int
    partition_count: int
    min_insync_replicas: int
    defaults_differ: (
        bool  # the topic sets no minimum, and each broker's settings have another default
    )
    syncs_every_append: bool
    segment_bytes: int
    faults: tuple[Fault, ...]
    fault_interval_ms: int
    outage_ms: int
    weather: NetworkWeather
    replica_lag_ms: int
    session_timeout_ms: int = 500
    allows_unclean_elections: bool = False

    @property
    def is_minimum_fixed(self) -> bool:
        """Whether the same number of replicas must be in sync from start to end, whoever is controller."""
        return not self.defaults_differ and Fault.MINIMUM not in self.faults

    def default_min_isr(self, broker_id: int) -> int:
        """min.insync.replicas in a broker's settings."""
        return 1 + broker_id % 2 if self.defaults_differ else 1


def draw_plan(seed: int, steps: int) -> Plan:
    """The run that a seed stands for."""
    chance = Random(seed)
    broker_count = chance.choice((3, 3, 4))
    replication_factor = 3 if chance.random() < 0.8 else 2
    weather = NetworkWeather(
        delay_ms=chance.choice((3, 10, 40)),
        drop=chance.choice((0.0, 0.0, 0.01, 0.05)),
        duplicate=chance.choice((0.0, 0.02, 0.2)),
        slow=chance.choice((0.0, 0.02, 0.1, 0.3)),
        slow_ms=chance.choice((300, 1_000, 4_000)),
    )
    kinds: list[Fault] = [fault for fault in Fault if fault not in _DRAWN_LAST]
    if broker_count == replication_factor:
        kinds.remove(Fault.MOVE)
    faults = chance.sample(kinds, chance.randint(1, 6))
    is_unclean = chance.random() < 0.1
    if is_unclean:
        # A leader that is alone in sync when it is removed: what an unclean election would lose.
        others = {Fault.LAG, *faults} & _SESSIONS_LIVE - {Fault.REMOVE}
        faults = [Fault.REMOVE, *sorted(others, key=kinds.index)]
    if chance.random() < 0.3 and Fault.LAG not in faults:
        faults.append(Fault.LAG)  # an ISR that shrinks and grows is fertile ground for the others
    if chance.random() < 0.25 and not is_unclean:
        # It is of no consequence unless the ISR shrinks below the minimum and the leader dies after that.
        replication_factor = chance.choice((2, 2, replication_factor))
        faults += [Fault.MINIMUM, *(each for each in (Fault.KILL, Fault.LAG) if each not in faults)]
    plan = Plan(
        seed=seed,
        steps=steps,
        broker_count=broker_count,
        replication_factor=replication_factor,
        partition_count=chance.choice((1, 1, 2)),
        min_insync_replicas=chance.choice((1, 1, 1) if is_unclean else (1, 2, 2)),
        syncs_every_append=chance.random() < 0.25,
        segment_bytes=chance.choice((400, 2_000, 100_000)),
        faults=tuple(faults),
        fault_interval_ms=chance.choice((40, 100, 300)),
        outage_ms=chance.choice((100, 500, 1_500)),
        weather=weather,
        replica_lag_ms=chance.choice((150, 300, 1_000)),
        defaults_differ=chance.random() < 0.1,
        allows_unclean_elections=is_unclean,
    )
    # Drawn last, so that the other seeds stand for what they stood for before there were these faults.
    if chance.random() < 0.15:
        plan = replace(plan, faults=(*plan.faults, Fault.FULL))
    if chance.random() < 0.1 and not is_unclean:
        plan = replace(plan, faults=(*plan.faults, Fault.BLACKOUT))
    return plan
