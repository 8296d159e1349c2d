"""What a seed means: how large the cluster is, what is promised, who works with it, and what goes wrong when.

Swarm testing: each seed draws a subset of the faults with a rate of its own, because a run in which everything goes wrong at
once hides what a run with two faults finds. The moments at which faults strike are drawn here, so that a failing run can be
played again without some of them.
"""

from dataclasses import dataclass, replace
from enum import Enum
from random import Random
from typing import Final

from headrace.testing.simulation.producer import ProducerKind
from headrace.testing.virtual.network import Weather
from headrace.testing.virtual.process import Pace


class Fault(Enum):
    """What can go wrong, and what operators do. The weather on the network is drawn for itself."""

    # Processes and machines.
    KILL = "kill"  # a process dies, what it wrote stays
    POWER = "power"  # a machine dies, what was not synced goes, and nobody is told
    WIPE = "wipe"  # a process dies and comes back with an empty disk
    BLACKOUT = (
        "blackout"  # all processes die at once, and perhaps one comes back with an empty disk
    )
    PAUSE = "pause"  # a process stands still and does not know it
    BOUNCE = "bounce"  # a broker is stopped in an orderly way and started again
    UPGRADE = "upgrade"  # brokers of an older version are replaced, one after another
    CLOCK = "clock"  # a wall clock jumps
    # Links.
    SPLIT = "split"  # a black hole between two brokers, one way or both
    RESET = (
        "reset"  # connections between two brokers are reset, and for a while there are no new ones
    )
    REFUSE = "refuse"  # nobody can connect to a broker that lives
    SLOW = "slow"  # everything from and to a broker takes long
    CLIENTS = "clients"  # clients do not reach a broker
    MEMBERS = "members"  # members of a group die, and others come
    # The coordination store.
    STORE = (
        "store"  # a broker's connection to the store is reset, and for a while there is no other
    )
    SILENCE = "silence"  # a broker's link to the store is a black hole
    EXPIRE = "expire"  # the store ends a session although its owner lives
    REMOVE = "remove"  # a living broker's registration is removed, and its controllership
    SEAT = "seat"  # the controllership is taken away
    OUTAGE = "outage"  # the whole store is away
    FORGET = "forget"  # the whole store is empty, or another cluster's
    # Disks.
    FULL = "full"  # a disk has no room for a while
    SLOW_DISK = "slow disk"  # syncs take long
    SECTOR = "sector"  # a byte of a log cannot be read
    DIRECTORY = "directory"  # everything in a log directory fails
    # Operators.
    ELECT = "elect"  # another replica is made the preferred leader, and elected
    MOVE_LOG = "move log"  # a replica is moved to another log directory of its broker
    UNCLEAN = "unclean"  # an unclean election is asked for
    MOVE = "move"  # a partition is reassigned, or a reassignment is cancelled or replaced
    DELETE = "delete"  # records are deleted from the front
    MINIMUM = "minimum"  # min.insync.replicas is changed
    CONFIG = "config"  # other configs are changed
    TOPICS = "topics"  # topics are created, deleted, created again, grown


# Faults that end no session: under these, no unclean election may come about even where it is allowed.
_SESSIONS_LIVE: Final = frozenset(
    (
        Fault.SPLIT,
        Fault.RESET,
        Fault.REFUSE,
        Fault.SLOW,
        Fault.CLIENTS,
        Fault.MEMBERS,
        Fault.REMOVE,
        Fault.SEAT,
        Fault.CLOCK,
        Fault.ELECT,
        Fault.MOVE,
        Fault.DELETE,
    )
)


@dataclass(frozen=True, slots=True)
class Strike:
    """One fault at its moment, in milliseconds after the faults begin; what it draws comes from its own seed."""

    number: int
    at_ms: int
    fault: Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPlan:
    """A topic that exists from the start."""

    name: str
    partitions: int
    configs: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run. Times are virtual."""

    seed: int
    broker_count: int
    replication_factor: int
    min_insync_replicas: int
    defaults_differ: bool  # topics set no minimum, and brokers' settings have different defaults
    allows_unclean_elections: bool
    session_timeout_ms: int
    granted_timeout_ms: int
    replica_lag_ms: int
    segment_bytes: int
    roll_ms: int  # segments are rolled after that time
    checkpoint_ms: int  # between two writings of the checkpoints
    log_dirs: int  # of each broker
    syncs_every_append: bool
    topics: tuple[TopicPlan, ...]
    producers: tuple[ProducerKind, ...]
    group_members: int
    has_transactions: bool
    rounds: int  # of faults, with a rest after each in which everything heals
    faults: tuple[Fault, ...]
    strikes: tuple[Strike, ...]
    duration_ms: int
    outage_ms: int
    weather: Weather
    pace: Pace

    @property
    def is_minimum_fixed(self) -> bool:
        """Whether the same number of replicas must be in sync from start to end, whoever is controller."""
        return not self.defaults_differ and Fault.MINIMUM not in self.faults

    @property
    def survives_a_lost_disk(self) -> bool:
        """Whether the cluster promises to lose nothing when one broker loses its disk."""
        return self.is_minimum_fixed and self.min_insync_replicas >= 2

    @property
    def starts_with_older_version(self) -> bool:
        """Whether the brokers cannot read all changes of newer controllers at first."""
        return Fault.UPGRADE in self.faults

    def default_min_isr(self, broker_id: int) -> int:
        """min.insync.replicas in a broker's settings."""
        return 1 + broker_id % 2 if self.defaults_differ else self.min_insync_replicas

    @property
    def is_calm(self) -> bool:
        """Whether the weather is fair and no process stalls."""
        return self.weather == Weather() and self.pace == Pace()

    def calmed(self) -> "Plan":
        """The same run in fair weather."""
        return replace(self, weather=Weather(), pace=Pace())

    def without(self, numbers: frozenset[int]) -> "Plan":
        """The same run without some of its strikes."""
        return replace(
            self, strikes=tuple(each for each in self.strikes if each.number not in numbers)
        )


def draw_plan(seed: int) -> Plan:
    """The run that a seed stands for."""
    chance = Random(seed)
    broker_count = chance.choice((3, 3, 3, 4))
    replication_factor = 3 if chance.random() < 0.8 else 2
    is_unclean = chance.random() < 0.08
    faults = _draw_faults(chance, is_unclean=is_unclean)
    if broker_count == replication_factor and Fault.MOVE in faults:
        broker_count += 1
    # Where all replicas must be in sync, whoever leaves is eligible until it is back: elections from outside the ISR.
    min_isr = chance.choice((1,) if is_unclean else (1, 2, 2, replication_factor))
    duration_ms = chance.choice((4_000, 8_000, 15_000))
    session_timeout_ms = chance.choice((2_000, 3_000, 6_000))
    return Plan(
        seed=seed,
        broker_count=broker_count,
        replication_factor=replication_factor,
        min_insync_replicas=min_isr,
        defaults_differ=Fault.MINIMUM in faults and chance.random() < 0.4,
        allows_unclean_elections=is_unclean,
        session_timeout_ms=session_timeout_ms,
        granted_timeout_ms=chance.choice((session_timeout_ms, session_timeout_ms, 2_000)),
        replica_lag_ms=chance.choice(
            (500, 1_000) if Fault.MINIMUM in faults else (500, 1_000, 3_000)
        ),
        segment_bytes=chance.choice((400, 2_000, 100_000)),
        roll_ms=chance.choice((1_000, 3_000, 604_800_000)),
        checkpoint_ms=chance.choice((500, 500, 5_000)),
        log_dirs=2 if chance.random() < 0.3 or Fault.MOVE_LOG in faults else 1,
        syncs_every_append=chance.random() < 0.2,
        topics=_draw_topics(chance),
        producers=_draw_producers(chance),
        group_members=chance.choice((1, 2, 3) if Fault.MEMBERS in faults else (0, 0, 1, 2)),
        # From chance of its own: the other seeds tell the same stories with transactions as without.
        has_transactions=Random(f"{seed}:transactions").random() < 0.3,
        rounds=chance.choice((1, 1, 2)),
        faults=faults,
        strikes=draw_strikes(chance, faults, duration_ms),
        duration_ms=duration_ms,
        outage_ms=chance.choice((1_500, 4_000) if Fault.MINIMUM in faults else (300, 1_500, 4_000)),
        weather=_draw_weather(chance),
        pace=_draw_pace(chance),
    )


def _draw_faults(chance: Random, *, is_unclean: bool) -> tuple[Fault, ...]:
    kinds = [fault for fault in Fault if not is_unclean or fault in _SESSIONS_LIVE]
    faults = chance.sample(kinds, chance.randint(1, 6))
    if is_unclean:
        # A leader that is alone in sync when it is removed: what an unclean election would lose.
        faults = [Fault.REMOVE, Fault.SPLIT, *faults]
    if chance.random() < 0.3:
        faults.append(Fault.SPLIT)  # an ISR that shrinks and grows is fertile ground for the others
    if Fault.MINIMUM in faults:
        # It is of no consequence unless the ISR shrinks below the minimum and the leader dies after that.
        faults += [Fault.KILL, Fault.SPLIT]
    return tuple(dict.fromkeys(faults))


def draw_strikes(chance: Random, faults: tuple[Fault, ...], duration_ms: int) -> tuple[Strike, ...]:
    """When each of the faults strikes."""
    interval_ms = chance.choice((150, 500, 1_200))
    strikes: list[Strike] = []
    at_ms = 0
    while (at_ms := at_ms + 1 + chance.randrange(2 * interval_ms)) < duration_ms:
        strikes.append(Strike(len(strikes), at_ms, chance.choice(faults)))
    return tuple(strikes)


def _draw_topics(chance: Random) -> tuple[TopicPlan, ...]:
    topics = [TopicPlan(name="orders", partitions=chance.choice((1, 1, 2)))]
    if chance.random() < 0.2:
        configs = (
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0.01"),
        )
        topics.append(TopicPlan(name="compacted", partitions=1, configs=configs))
    return tuple(topics)


def _draw_producers(chance: Random) -> tuple[ProducerKind, ...]:
    return (
        ProducerKind(
            acks=-1,
            is_idempotent=True,
            most_in_flight=chance.choice((1, 3, 5)),
            codec=chance.choice((0, 0, 1, 4)),
        ),
        ProducerKind(acks=-1, is_idempotent=chance.random() < 0.5, keys=5),
        ProducerKind(acks=chance.choice((0, 1, 1)), keys=5, most_in_flight=3),
    )


def _draw_weather(chance: Random) -> Weather:
    return Weather(
        delay_us=chance.choice((500, 3_000, 20_000)),
        late_share=chance.choice((0.0, 0.0, 0.01, 0.05)),
        late_us=chance.choice((50_000, 250_000, 1_000_000)),
        split_share=chance.choice((0.0, 0.1, 0.5)),
    )


def _draw_pace(chance: Random) -> Pace:
    return Pace(
        step_us=chance.choice((20, 100, 500)),
        stall_share=chance.choice((0.0, 0.0, 0.001, 0.005)),
        stall_us=chance.choice((10_000, 100_000, 500_000)),
        thread_us=chance.choice((0, 2_000, 30_000)),
        timer_late_us=chance.choice((300, 300, 20_000)),
    )
