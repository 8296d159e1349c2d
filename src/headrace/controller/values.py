"""The values a cluster is made of: brokers, partitions, configs.

All immutable; a change replaces the value. They are msgspec structs because ten thousand
partitions are read at start, and because the same values travel to the brokers as JSON.
"""

import enum
from uuid import UUID

import msgspec

NO_LEADER = -1
# The partition epoch of a partition whose topic is created, but whose state is not written yet.
NEW_PARTITION = -1


class Endpoint(msgspec.Struct, frozen=True):
    """Where one listener of a broker can be reached."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class Broker(msgspec.Struct, frozen=True):
    """A registered broker. `epoch` tells its incarnations apart, later ones are greater.

    `offline` are replicas (topic id and partition) that it says it cannot use, because a disk of its own failed.
    `directories` are the ids of its log directories, with those that it could not open at its start.
    `features` are the features that it knows, each with its highest level.
    """

    broker_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    shutting_down: bool = False
    offline: frozenset[tuple[UUID, int]] = frozenset()
    directories: tuple[str, ...] = ()
    features: tuple[tuple[str, int], ...] = ()

    def endpoint(self, listener: str) -> Endpoint | None:
        """The endpoint of a listener."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class PartitionState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A partition. Of the replicas, `adding` are to come and `removing` are to go (KIP-455).

    `elr` are replicas out of the ISR that still have everything committed, because nothing could
    be committed since they left; `last_known_elr` is who led when the ISR became empty (KIP-966), and `last_known_epoch` the
    leader epoch of that leadership.
    `emptied` are replicas that lost a log directory while nobody was in sync: the last choice of an unclean election.
    `unclean_epoch` is the leader epoch of the last unclean election. `crashed_epoch` is the last leader epoch in which a leader
    did not shut down cleanly and was elected again as the last known one: the end of its log may be lost. In both cases other replicas may
    delete committed records that the leader lacks. Both are -1 again once all replicas are in sync.
    `former_epochs` are the last leader epochs before the present one. A replica that knows of another one between them has
    followed a coordination store of which only an older backup is left.
    `min_isr` is the partition's effective min.insync.replicas. Leader and controller both go by it, and by nothing
    else, because the `elr` is right only for the minimum by which the leader commits; 0 where no controller wrote it.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = -1
    partition_epoch: int = NEW_PARTITION
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    min_isr: int = 0
    emptied: tuple[int, ...] = ()
    unclean_epoch: int = -1
    crashed_epoch: int = -1
    last_known_epoch: int = -1
    former_epochs: tuple[int, ...] = ()

    def has_given_out(self, leader_epoch: int) -> bool:
        """Whether this leader epoch may be one of this partition's; False if it certainly is not."""
        former = self.former_epochs
        if leader_epoch > self.leader_epoch:
            return False
        return (
            not former
            or leader_epoch < former[0]
            or leader_epoch in former
            or leader_epoch == self.leader_epoch
        )

    @property
    def needed_isr(self) -> int:
        """How many replicas must be in sync before anything is committed; all of them if nobody says."""
        count = len(self.replicas)
        return min(self.min_isr, count) if self.min_isr else count

    @property
    def is_new(self) -> bool:
        """Whether its state was never written."""
        return self.partition_epoch == NEW_PARTITION

    @property
    def is_reassigning(self) -> bool:
        """Whether replicas are on their way in or out."""
        return bool(self.adding or self.removing)

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas once the reassignment under way is done."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)


class ConfigKind(enum.IntEnum):
    """What a config belongs to; the numbers are those of the wire's resource types."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


# The name of a broker config that holds for all brokers.
ALL_BROKERS = ""
