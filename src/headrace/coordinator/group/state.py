"""A classic group while it lives: members, rebalance phase, parked requests. And the hard state.

Hard state (`HardState`) is exactly what the records of the shard say; only `machine.replay` writes it.
A `ClassicGroup` is soft: a new leader builds it from the hard state and forgets the rest (who was
waiting, who had not rejoined yet). Methods here keep the fields consistent with each other; what
follows from a change (answers, timers, records) is decided in `join`, `sync`, `rebalance`, `membership`.

Legal transitions are the table `LEGAL_PREDECESSORS`; an illegal one is a bug and says so.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

from headrace.coordinator.contract import Token
from headrace.coordinator.group.pending_offsets import PendingOffsets
from headrace.coordinator.group.stored_records import CommittedOffset, GroupMetadata, StoredMember
from headrace.coordinator.group.subscription import subscribed_topics
from headrace.wire.error_code import ErrorCode

CONSUMER_PROTOCOL_TYPE = "consumer"


class GroupState(StrEnum):
    """Where a classic group is in its round. The text is what DescribeGroups and ListGroups show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


LEGAL_PREDECESSORS: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE}
    ),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
}

Protocols = tuple[tuple[str, bytes], ...]
"""A member's protocols by preference, each with its metadata."""


class IllegalTransition(AssertionError):
    """A group was moved to a state that cannot follow the one it is in."""


@dataclass(slots=True, kw_only=True)
class Member:
    """One member of a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    """Its first JoinGroup is still parked: it does not know its id, so it cannot send heartbeats."""

    def metadata(self, protocol_name: str) -> bytes:
        """What it said under this protocol."""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise AssertionError(f"{self.member_id} does not support {protocol_name}")


@dataclass(slots=True, kw_only=True)
class ClassicGroup:
    """A group whose members agree on their assignment among themselves (JoinGroup, SyncGroup)."""

    group_id: str
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState | None = None
    state_since_ms: int | None = None
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Instance id → member id."""
    pending_members: dict[str, int | None] = field(default_factory=dict)
    """Ids given out with MEMBER_ID_REQUIRED and not used yet → the connection that asked."""
    awaiting_join: dict[str, Token] = field(default_factory=dict)
    awaiting_sync: dict[str, Token] = field(default_factory=dict)
    pending_sync: set[str] = field(default_factory=set)
    """Members from which this generation's SyncGroup is still expected."""
    supported_protocols: Counter[str] = field(default_factory=Counter)
    topics: frozenset[str] | None = None
    """What the members subscribe to; None when that cannot be known."""
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0
    new_member_added: bool = False

    # -- questions -------------------------------------------------------------------------------

    @property
    def can_rebalance(self) -> bool:
        return self.state in LEGAL_PREDECESSORS[GroupState.PREPARING_REBALANCE]

    @property
    def uses_consumer_protocol(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def all_joined(self) -> bool:
        return len(self.awaiting_join) == len(self.members) and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def is_subscribed_to(self, topic: str) -> bool:
        """If the subscriptions cannot be read, a consumer group may be subscribed to anything."""
        return self.uses_consumer_protocol if self.topics is None else topic in self.topics

    def supports(self, protocol_type: str, protocol_names: Collection[str]) -> bool:
        """May a member with these protocols take part?"""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocol_names)
        return self.protocol_type == protocol_type and any(
            self.supported_protocols[name] == len(self.members) for name in protocol_names
        )

    def refuse_member(self, member_id: str, instance_id: str | None) -> ErrorCode | None:
        """Why a request in this member's name must be refused, or None."""
        if instance_id is not None:
            current = self.static_members.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return None if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def has_satisfied_heartbeat(self, member: Member) -> bool:
        """A member whose request is parked here is alive by definition, unless it is new."""
        return not member.is_new and (
            member.member_id in self.awaiting_join or member.member_id in self.awaiting_sync
        )

    def select_protocol(self) -> str:
        """Each member votes for its first choice among those that all support; most votes win."""
        candidates = {
            name for name, count in self.supported_protocols.items() if count == len(self.members)
        }
        votes = Counter(
            next(name for name, _ in member.protocols if name in candidates)
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def compute_topics(self) -> frozenset[str] | None:
        """The union of the subscriptions under the chosen protocol."""
        if not self.uses_consumer_protocol:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        union: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.metadata(self.protocol_name))
            if topics is None:
                return None
            union.update(topics)
        return frozenset(union)

    # -- changes ---------------------------------------------------------------------------------

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        if self.state not in LEGAL_PREDECESSORS[state]:
            raise IllegalTransition(
                f"group {self.group_id!r}: {self.state} to {state} in generation {self.generation_id} "
                f"with {len(self.members)} members"
            )
        self.previous_state, self.state = self.state, state
        self.state_since_ms = now_ms

    def add(self, member: Member, protocol_type: str) -> None:
        """Take in a member; the first one becomes the leader and sets the protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        assert self.protocol_type == protocol_type, (self.protocol_type, protocol_type)
        if member.instance_id is not None:
            assert member.instance_id not in self.static_members, member
            self.static_members[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.supported_protocols.update(name for name, _ in member.protocols)
        self.pending_members.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Forget a member. Its parked requests must have been answered."""
        assert member_id not in self.awaiting_join, member_id
        assert member_id not in self.awaiting_sync, member_id
        member = self.members.pop(member_id)
        self._count_out(member.protocols)
        if member.instance_id is not None:
            del self.static_members[member.instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_sync.discard(member_id)

    def replace_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count_out(member.protocols)
        member.protocols = protocols
        self.supported_protocols.update(name for name, _ in protocols)

    def _count_out(self, protocols: Protocols) -> None:
        counts = self.supported_protocols
        for name, _ in protocols:
            if counts[name] == 1:
                del counts[name]
            else:
                counts[name] -= 1

    def rename_static_member(self, member: Member, new_member_id: str) -> None:
        """The instance came back under a new member id; role and assignment stay."""
        old_member_id = member.member_id
        assert member.instance_id is not None, member
        del self.members[old_member_id]
        member.member_id = new_member_id
        self.members[new_member_id] = member
        self.static_members[member.instance_id] = new_member_id
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        if old_member_id in self.pending_sync:
            self.pending_sync.remove(old_member_id)
            self.pending_sync.add(new_member_id)

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has rejoined, else take one that has. False if there is none."""
        if self.leader_id is None:
            return False
        if self.leader_id not in self.awaiting_join:
            joined = next(iter(self.awaiting_join), None)
            if joined is None:
                return False
            self.leader_id = joined
        return True

    def start_next_generation(self, now_ms: int) -> None:
        """The join phase is over: choose the protocol, or fall empty."""
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.topics = self.compute_topics()
        self.pending_sync.clear()
        self.transition_to(
            GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms
        )

    # -- to and from the hard state --------------------------------------------------------------

    def as_metadata(self, assignments: dict[str, bytes]) -> GroupMetadata:
        """What a record of this group in this generation says."""
        protocol_name = self.protocol_name
        return GroupMetadata(
            protocol_type=self.protocol_type or "",
            generation_id=self.generation_id,
            protocol_name=protocol_name,
            leader_id=self.leader_id,
            state_since_ms=-1 if self.state_since_ms is None else self.state_since_ms,
            members=tuple(
                StoredMember(
                    member_id=member.member_id,
                    instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host=member.client_host,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    session_timeout_ms=member.session_timeout_ms,
                    subscription=member.metadata(protocol_name or ""),
                    assignment=assignments.get(member.member_id, b""),
                )
                for member in self.members.values()
            ),
        )

    @classmethod
    def from_metadata(cls, group_id: str, metadata: GroupMetadata) -> "ClassicGroup":
        """The group as a new leader finds it: stable, or empty."""
        group = cls(
            group_id=group_id,
            state=GroupState.STABLE if metadata.members else GroupState.EMPTY,
            state_since_ms=None if metadata.state_since_ms == -1 else metadata.state_since_ms,
            generation_id=metadata.generation_id,
            protocol_type=metadata.protocol_type or None,
            protocol_name=metadata.protocol_name,
            leader_id=metadata.leader_id,
        )
        for stored in metadata.members:
            member = Member(
                member_id=stored.member_id,
                instance_id=stored.instance_id,
                client_id=stored.client_id,
                client_host=stored.client_host,
                rebalance_timeout_ms=stored.rebalance_timeout_ms,
                session_timeout_ms=stored.session_timeout_ms,
                protocols=((metadata.protocol_name or "", stored.subscription),),
                assignment=stored.assignment,
            )
            group.add(member, metadata.protocol_type)
        if group.leader_id not in group.members:
            group.leader_id = next(iter(group.members), None)
        group.topics = group.compute_topics()
        return group


Offsets = dict[str, dict[str, dict[int, CommittedOffset]]]
"""Group id → topic → partition → what was committed. Empty inner dictionaries do not occur."""


@dataclass(slots=True)
class HardState:
    """What the records of a shard say: nothing more, nothing less."""

    groups: dict[str, GroupMetadata] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    pending: PendingOffsets = field(default_factory=PendingOffsets)

    @property
    def groups_with_offsets(self) -> frozenset[str]:
        """Groups that have committed offsets, or will have if a transaction is committed."""
        return self.pending.groups.union(self.offsets)


@dataclass(slots=True)
class ShardState:
    """All groups of one shard. Every group of the hard state has a live one, once loaded."""

    hard: HardState = field(default_factory=HardState)
    groups: dict[str, ClassicGroup] = field(default_factory=dict)
