"""Deliberately broken variants of the core, each one rule short. A simulation that does not catch them proves nothing.

Each is a patch of one small decision; what it breaks is said in its own words and in those of the KIP that introduced the rule.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from headrace.broker.cluster.dead_broker_removal import DeadBrokerRemoval
from headrace.broker.replicas.replica_hosting import ReplicaHosting
from headrace.controller import brokers, configs, driver, elections, isr, reassignment
from headrace.controller.brokers import Registration
from headrace.controller.changes import ChangeGate, PartitionChanged
from headrace.controller.core import Core
from headrace.controller.isr import IsrProposal
from headrace.controller.isr_proposals import IsrProposals
from headrace.controller.values import Broker, PartitionState
from headrace.coordination import membership
from headrace.coordination.lease import ENDLESS, SessionLease
from headrace.coordination.nodes import BrokerNode
from headrace.coordination.store import BadVersion, Delete, NoNode, SessionState
from headrace.coordination.zookeeper import ZooKeeperStore
from headrace.log import recovery
from headrace.log.partition_log import PartitionLog
from headrace.log.segments.segment import Segment, offset_name
from headrace.replication import fetch_loop
from headrace.replication.fetch_loop import FetchLoop
from headrace.replication.leader import LeaderState, PartitionAssignment
from headrace.replication.partition import Partition
from headrace.replication.partition_read import FollowerFetch, PartitionRead
from headrace.replication.waiting import OffsetWaiters, OnCommitted
from headrace.testing.memory_disk import MemoryFile
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


def ignores_an_overdue_session(patch: pytest.MonkeyPatch) -> None:
    """A leader goes on while its session is overdue, until ZooKeeper's client says that the session is lost."""
    session_changed = ReplicaHosting.session_changed
    append = Partition.append

    def hear_all_but_overdue(self: ReplicaHosting, state: SessionState) -> None:
        if state is not SessionState.OVERDUE:
            session_changed(self, state)

    def append_without_lease(self: Partition, *args: Any, **rest: Any) -> Any:
        lease, self._lease = self._lease, ENDLESS
        try:
            return append(self, *args, **rest)
        finally:
            self._lease = lease

    patch.setattr(ReplicaHosting, "session_changed", hear_all_but_overdue)
    patch.setattr(Partition, "append", append_without_lease)


def keeps_the_epoch_when_a_replica_leaves(patch: pytest.MonkeyPatch) -> None:
    """A replica that was removed by a reassignment, and comes back by another, is believed what it said before."""
    patch.setattr(reassignment, "_fenced", lambda before, after: after)


def forgets_to_sync_a_truncation(patch: pytest.MonkeyPatch) -> None:
    """What a follower cut may come back after a loss of power, in front of newer batches."""
    cut = PartitionLog._cut

    def cut_only(self: PartitionLog, offset: int, position: int | None) -> None:
        with pytest.MonkeyPatch.context() as unsynced:
            unsynced.setattr(MemoryFile, "syncer", lambda file: lambda: None)
            cut(self, offset, position)

    patch.setattr(PartitionLog, "_cut", cut_only)


def notes_no_truncation(patch: pytest.MonkeyPatch) -> None:
    """The checkpoints tell of a truncation only when they are rewritten, seconds after the cut."""
    patch.setattr(PartitionLog, "note_truncation", lambda self, offset, checkpointed=0: None)


def takes_changes_of_older_controllers(patch: pytest.MonkeyPatch) -> None:
    """What a deposed controller published last is applied over what its successor published first."""
    patch.setattr(ChangeGate, "admits", lambda self, batch: True)


def counts_answers_of_older_epochs(patch: pytest.MonkeyPatch) -> None:
    """A follower takes an answer that it asked for in an earlier leader epoch."""

    def counts(partition: Partition, asked_epoch: int) -> bool:
        return not partition.is_leader

    patch.setattr(fetch_loop, "counts", counts)


def keeps_the_eligible_of_a_sufficient_isr(patch: pytest.MonkeyPatch) -> None:
    """The ELR is not cleared when the ISR has the minimum again, and records are committed without its members."""

    def trusting(partition: PartitionState, isr: tuple[int, ...]) -> PartitionState:
        elr = tuple(each for each in partition.elr if each not in isr)
        return msgspec.structs.replace(
            partition, isr=isr, elr=elr, last_known_elr=(), last_known_epoch=-1, emptied=()
        )

    patch.setattr(elections, "_trusting", trusting)


def lets_any_incarnation_join(patch: pytest.MonkeyPatch) -> None:
    """Before KIP-903: a replica joins the ISR for what an earlier process of its broker had fetched."""
    unfit = isr._unfit

    def unfit_of_any_epoch(core: Core, partition: PartitionState, proposal: IsrProposal) -> Any:
        members = tuple(
            msgspec.structs.replace(each, broker_epoch=isr.ANY_BROKER_EPOCH)
            for each in proposal.new_isr
        )
        return unfit(core, partition, msgspec.structs.replace(proposal, new_isr=members))

    patch.setattr(isr, "_unfit", unfit_of_any_epoch)


def gives_roles_by_name(patch: pytest.MonkeyPatch) -> None:
    """A topic that was deleted and created again in one batch of changes gets its predecessor's role and leader epoch."""
    apply_changes = ReplicaHosting._apply_changes

    def apply_by_name(self: ReplicaHosting, changes: Any) -> None:
        apply_changes(self, changes)
        for change in changes:
            if isinstance(change, PartitionChanged):
                partition = self._partitions.get(change.topic, change.index)
                if partition is not None:
                    self._give_role(partition, change.partition)

    patch.setattr(ReplicaHosting, "_apply_changes", apply_by_name)


def rolls_before_sealing(patch: pytest.MonkeyPatch) -> None:
    """The new segment's files are there before the old one is sealed, which may fail on a full disk; and recovery believes them."""
    roll = PartitionLog.roll

    def create_and_roll(self: PartitionLog, now_ms: int, base_offset: int | None = None) -> Any:
        base = self.log_end_offset if base_offset is None else base_offset
        path = f"{self.directory}/{offset_name(base)}"
        if self.segments.active.size and not self.disk.exists(f"{path}.log"):
            Segment.create(self.disk, path, base, self.config, now_ms=now_ms)
        return roll(self, now_ms, base_offset)

    patch.setattr(PartitionLog, "roll", create_and_roll)
    patch.setattr(recovery, "_remove_failed_roll", lambda log, segment: None)
    patch.setattr(recovery, "_remove_failed_rolls", lambda log, segments: None)


def believes_one_witness(patch: pytest.MonkeyPatch) -> None:
    """One refused connection removes a registration, and counts as the end of the session for an unclean election."""

    async def remove_at_once(self: DeadBrokerRemoval, dead: Broker) -> bool:
        node = await self._store.get(BrokerNode.path(dead.broker_id))
        if node is not None and node.created_txn == dead.epoch:
            with suppress(NoNode, BadVersion):
                await self._store.multi([Delete(BrokerNode.path(dead.broker_id), node.version)])
        return True

    patch.setattr(DeadBrokerRemoval, "_testify", remove_at_once)
    patch.setattr(Core, "removed", lambda self, live: frozenset())


def cancels_a_move_of_the_only_copy(patch: pytest.MonkeyPatch) -> None:
    """A cancelled or replaced reassignment drops replicas although none that stays has everything."""
    patch.setattr(reassignment, "complete_copies", lambda partition: set())


def answers_deletions_before_followers(patch: pytest.MonkeyPatch) -> None:
    """DeleteRecords is answered when the leader has deleted: after a failover the records are back."""

    def low_watermark(self: Partition, live: Any) -> int | None:
        return None if self.leader is None else self.log.log_start_offset

    patch.setattr(Partition, "low_watermark", low_watermark)


def leaves_partitions_that_had_no_room(patch: pytest.MonkeyPatch) -> None:
    """A follower whose disk was full once does not fetch the partition again."""
    refuse_for_disk, wait = Partition.refuse_for_disk, FetchLoop._wait
    full: set[int] = set()

    def refuse_and_remember(self: Partition, *args: Any, **rest: Any) -> Any:
        full.add(id(self))
        return refuse_for_disk(self, *args, **rest)

    def leave_or_wait(self: FetchLoop, partition: Partition) -> None:
        if id(partition) in full:
            self.remove(partition)
        else:
            wait(self, partition)

    patch.setattr(Partition, "refuse_for_disk", refuse_and_remember)
    patch.setattr(FetchLoop, "_wait", leave_or_wait)


def counts_the_lease_by_the_requested_time_out(patch: pytest.MonkeyPatch) -> None:
    """The ensemble may grant less than is asked for, and ends the session earlier."""
    on_confirmed = ZooKeeperStore._on_confirmed

    def confirm_by_request(self: ZooKeeperStore, session: int, sent_at: float, _: float) -> None:
        on_confirmed(self, session, sent_at, self._session_timeout_s)

    patch.setattr(ZooKeeperStore, "_on_confirmed", confirm_by_request)


def looks_up_deleted_topics(patch: pytest.MonkeyPatch) -> None:
    """A topic that is deleted in the batch that changes its partitions ends the broker."""
    apply_changes = ReplicaHosting._apply_changes

    def look_up(self: ReplicaHosting, changes: Any) -> None:
        for change in changes:
            if isinstance(change, PartitionChanged):
                self._cluster.state.topics[change.topic]
        apply_changes(self, changes)

    patch.setattr(ReplicaHosting, "_apply_changes", look_up)


def adopts_any_store(patch: pytest.MonkeyPatch) -> None:
    """A broker registers in, and controls, whatever cluster the coordination store holds."""

    async def require_nothing(store: Any, expected: str | None) -> None:
        return

    patch.setattr(membership, "require_cluster", require_nothing)
    patch.setattr(driver, "require_cluster", require_nothing)


def reads_past_open_transactions(patch: pytest.MonkeyPatch) -> None:
    """A reader of committed data is served up to the high watermark, and not only up to the last stable offset."""
    patch.setattr(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def tells_of_no_aborted_transactions(patch: pytest.MonkeyPatch) -> None:
    """An answer to a reader of committed data does not name the transactions that were aborted."""
    patch.setattr(PartitionLog, "aborted_transactions", lambda self, start, end: [])


def forgets_epochs_without_records(patch: pytest.MonkeyPatch) -> None:
    """Recovery knows the leader epochs of batches only, and compaction leaves none of some."""
    recover = recovery._recover_segment

    def recover_alone(*args: Any) -> tuple[int, bool]:
        return recover(*args)[0], False

    patch.setattr(recovery, "_recover_segment", recover_alone)
