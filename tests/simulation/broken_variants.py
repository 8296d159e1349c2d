"""Deliberately broken variants of the core, each one rule short. A simulation that does not catch them proves nothing.

Each is a patch of one small decision; what it breaks is said in its own words and in those of the KIP that introduced the rule.
"""

from collections.abc import Callable, Collection
from typing import Any

import msgspec
import pytest

from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.controller import brokers, configs, isr
from headrace.controller.brokers import Registration
from headrace.controller.core import Core
from headrace.controller.isr import IsrProposal
from headrace.controller.isr_proposals import IsrProposals
from headrace.controller.values import PartitionState
from headrace.coordination.lease import SessionLease
from headrace.replication.leader import LeaderState, PartitionAssignment
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.replication.waiting import OffsetWaiters, OnCommitted
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refusal

Variant = Callable[[pytest.MonkeyPatch], None]


def truncates_by_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """Before KIP-101: a follower cuts its log to its high watermark, which lags behind its leader's."""
    become_follower = Partition.become_follower

    def become_follower_and_cut(self: Partition, *leader: Any, **rest: Any) -> None:
        become_follower(self, *leader, **rest)
        self.truncate_as_follower(self.high_watermark, now_ms=0)

    patch.setattr(Partition, "become_follower", become_follower_and_cut)


def counts_fetches_of_older_epochs(patch: pytest.MonkeyPatch) -> None:
    """The first try of KIP-320: a leader believes whoever fetches, in whatever epoch, before it looks at the epochs."""
    read_as_leader = Partition.read_as_leader

    def count_and_read(
        self: Partition, follower: FollowerFetch, max_bytes: int, **rest: Any
    ) -> PartitionRead | Refusal:
        leader = self.leader
        if leader is not None:
            leader.on_follower_fetch(
                follower.replica_id,
                follower.fetch_offset,
                log_end_offset=self.log.log_end_offset,
                broker_epoch=follower.broker_epoch,
                now_ms=rest["now_ms"],
            )
            self._advance()
        return read_as_leader(self, follower, max_bytes, **rest)

    patch.setattr(Partition, "read_as_leader", count_and_read)


def ignores_the_partition_epoch(patch: pytest.MonkeyPatch) -> None:
    """Before KIP-497: the controller takes an ISR that was proposed for another state than the present one."""

    def fence(partition: PartitionState, proposal: IsrProposal, broker_id: int) -> ErrorCode | None:
        if proposal.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return None if partition.leader == broker_id else ErrorCode.INVALID_REQUEST

    patch.setattr(isr, "_fence", fence)


def acknowledges_before_the_isr_has_it(patch: pytest.MonkeyPatch) -> None:
    """acks=all is answered like acks=1."""

    def add(self: OffsetWaiters, offset: int, waiter: OnCommitted) -> None:
        waiter(True)

    patch.setattr(OffsetWaiters, "add", add)


def counts_only_the_old_isr(patch: pytest.MonkeyPatch) -> None:
    """Not the maximal ISR: who is about to join does not count while the controller is asked."""
    decide = LeaderState._decide

    def decide_by_isr(
        self: LeaderState, assignment: PartitionAssignment, proposed_isr: tuple[int, ...] | None
    ) -> None:
        decide(self, assignment, None)
        self.proposed_isr = proposed_isr

    patch.setattr(LeaderState, "_decide", decide_by_isr)


def commits_what_the_leader_has(patch: pytest.MonkeyPatch) -> None:
    """The high watermark is the leader's own end."""

    def committed_offset(self: LeaderState, log_end_offset: int) -> int:
        return log_end_offset

    patch.setattr(LeaderState, "committed_offset", committed_offset)


def lets_everybody_join(patch: pytest.MonkeyPatch) -> None:
    """A follower need not have caught up before it is in sync."""
    patch.setattr(LeaderState, "_may_join", lambda self, replica, least_offset: True)


def leads_again_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-10527: a picture from before the restart makes a broker lead on in its old epoch."""
    patch.setattr(ReplicaHosting, "is_registered", True)


def trusts_whoever_comes_back(patch: pytest.MonkeyPatch) -> None:
    """Before KIP-966: a broker whose machine lost power is as eligible as before."""

    def follows_cleanly(self: Registration, seen_epoch: int | None) -> bool:
        return True

    patch.setattr(Registration, "follows_cleanly", follows_cleanly)


def trusts_a_last_leader_without_its_disk(patch: pytest.MonkeyPatch) -> None:
    """The last known leader is elected when all the others died, too, although it came back with an empty disk."""

    def missing_directories(self: Registration, seen: Collection[str]) -> tuple[str, ...]:
        return ()

    patch.setattr(Registration, "missing_directories", missing_directories)


def forgets_what_it_proposed(patch: pytest.MonkeyPatch) -> None:
    """A proposal without an answer is withdrawn, although the controller may have taken it or may take it yet."""
    due = IsrProposals.due

    def due_anew(self: IsrProposals, partitions: Any, **rest: Any) -> Any:
        found = due(self, partitions, **rest)
        for partition in found:
            leader = partition.leader
            assert leader is not None
            leader.withdraw()
        return found

    patch.setattr(IsrProposals, "due", due_anew)


def keeps_the_eligible_when_the_minimum_changes(patch: pytest.MonkeyPatch) -> None:
    """Before KIP-966's last revision: who was eligible by the old min.insync.replicas is so by the new one."""

    def with_min_isr(partition: PartitionState, min_isr: int) -> PartitionState:
        return msgspec.structs.replace(partition, min_isr=min_isr)

    for module in (brokers, configs):
        patch.setattr(module, "with_min_isr", with_min_isr)


def commits_by_its_own_minimum(patch: pytest.MonkeyPatch) -> None:
    """A leader goes by a min.insync.replicas of its own, whatever the controller derived the eligible leaders by."""
    become_leader = Partition.become_leader

    def become_leader_of_one(self: Partition, *args: Any, **rest: Any) -> None:
        become_leader(self, *args, **rest)
        assert self.leader is not None
        self.leader.has_min_isr = True
        self._advance()

    patch.setattr(Partition, "become_leader", become_leader_of_one)


def outlives_its_lease(patch: pytest.MonkeyPatch) -> None:
    """A leader that does not hear from the store goes on until somebody tells it."""
    patch.setattr(SessionLease, "is_over", lambda self: False)


def leads_without_a_registration(patch: pytest.MonkeyPatch) -> None:
    """A cluster state in which this broker is not registered is ignored."""
    patch.setattr(ReplicaHosting, "_resign_all", lambda self: None)


def elects_uncleanly_beside_a_living_session(patch: pytest.MonkeyPatch) -> None:
    """A broker whose registration was removed counts as dead, although its session lives."""
    patch.setattr(Core, "removed", lambda self, live: frozenset())


# Each with a seed that catches it.
VARIANTS: dict[Variant, int] = {
    truncates_by_high_watermark: 8,
    counts_fetches_of_older_epochs: 3,
    ignores_the_partition_epoch: 748,
    acknowledges_before_the_isr_has_it: 2,
    counts_only_the_old_isr: 8,
    commits_what_the_leader_has: 2,
    lets_everybody_join: 5,
    leads_again_after_a_restart: 17,
    trusts_whoever_comes_back: 17,
    trusts_a_last_leader_without_its_disk: 68,
    forgets_what_it_proposed: 8,
    keeps_the_eligible_when_the_minimum_changes: 189,
    commits_by_its_own_minimum: 9,
    outlives_its_lease: 33,
    leads_without_a_registration: 1,
    elects_uncleanly_beside_a_living_session: 182,
}
