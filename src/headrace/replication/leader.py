"""State of a leader (pure): the progress of its followers, the ISR, and the committed offset that follows from them.

Owns the followers' progress, the controller's newest word on the partition, and a proposed ISR. The log end offset and the
high watermark belong to the log and to the partition, which pass them in.

Rules:
- A follower counts only by fetches made in this leader's own epoch.
- What the in-sync replicas all have is committed, but nothing is while fewer than the minimum are in sync (KIP-966): who
  left before then still has all that is committed.
- While a change of the ISR is under way, the old and the proposed members both count (the maximal ISR).
- A follower may join the ISR once it has reached the high watermark and the start of this epoch; it leaves when it has not
  been at the leader's end for `replica.lag.time.max.ms`. Whoever has left starts from nothing: it may have come back empty.

Integers in, integers out: this runs for every append and every fetch.
"""

from collections.abc import Container
from typing import Final, Protocol

UNKNOWN: Final = -1


class PartitionAssignment(Protocol):
    """The controller's decision on a partition, as far as a replica needs it."""

    @property
    def replicas(self) -> tuple[int, ...]: ...
    @property
    def isr(self) -> tuple[int, ...]: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def partition_epoch(self) -> int: ...
    @property
    def needed_isr(self) -> int: ...


class FollowerProgress:
    """One follower, as its fetches in this epoch show it."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "end_offset",
        "fetched_ms",
        "leader_end_offset",
        "log_start_offset",
    )

    def __init__(self, now_ms: int) -> None:
        self.end_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.broker_epoch = UNKNOWN
        self.caught_up_ms = now_ms  # a new leader gives every member of its ISR time to fetch
        self.fetched_ms = UNKNOWN
        self.leader_end_offset = UNKNOWN  # the leader's, at the last fetch


class LeaderState:
    """One partition's leadership, for one leader epoch."""

    __slots__ = (
        "_broker_id",
        "_counted",
        "_followers",
        "_proposed_epochs",
        "assignment",
        "epoch_start_offset",
        "has_min_isr",
        "proposed_isr",
    )

    def __init__(
        self, broker_id: int, assignment: PartitionAssignment, *, log_end_offset: int, now_ms: int
    ) -> None:
        assert broker_id in assignment.isr, (
            f"broker {broker_id} leads without being in sync: {assignment.isr}"
        )
        self._broker_id = broker_id
        self.epoch_start_offset = log_end_offset
        self._followers = {
            replica: FollowerProgress(now_ms)
            for replica in assignment.replicas
            if replica != broker_id
        }
        self._proposed_epochs: dict[int, int] = {}
        self._decide(assignment, None)

    def _decide(
        self, assignment: PartitionAssignment, proposed_isr: tuple[int, ...] | None
    ) -> None:
        """Adopt the controller's decision and the proposal, and compute what every append needs of them."""
        self.assignment = assignment
        self.proposed_isr = proposed_isr
        # Whether the ISR has the minimum; without it nothing is committed, and acks=all is refused.
        self.has_min_isr = len(assignment.isr) >= assignment.needed_isr
        counted = dict.fromkeys((*assignment.isr, *(proposed_isr or ())))
        self._counted = [self._followers[each] for each in counted if each != self._broker_id]

    @property
    def isr(self) -> tuple[int, ...]:
        """The in-sync replicas, as decided by the controller."""
        return self.assignment.isr

    @property
    def needed_isr(self) -> int:
        """How many replicas must be in sync before anything is committed."""
        return self.assignment.needed_isr

    @property
    def leader_epoch(self) -> int:
        """The epoch of this leadership."""
        return self.assignment.leader_epoch

    @property
    def partition_epoch(self) -> int:
        """The partition epoch of the controller's newest decision."""
        return self.assignment.partition_epoch

    @property
    def replica_count(self) -> int:
        """How many replicas the partition has."""
        return len(self._followers) + 1

    @property
    def is_under_min_isr(self) -> bool:
        """Whether fewer are in sync than acks=all needs; while a change is under way, all of the maximal ISR count."""
        if self.has_min_isr:
            return False
        return len({*self.isr, *(self.proposed_isr or ())}) < self.needed_isr

    # ---- progress

    def committed_offset(self, log_end_offset: int) -> int:
        """The offset below which all records are on all in-sync replicas; -1 while fewer than the minimum are in sync."""
        if not self.has_min_isr:
            return UNKNOWN
        committed = log_end_offset
        for progress in self._counted:
            committed = min(committed, progress.end_offset)
        return committed

    def on_follower_fetch(
        self,
        replica: int,
        fetch_offset: int,
        *,
        log_end_offset: int,
        broker_epoch: int,
        now_ms: int,
        log_start_offset: int = UNKNOWN,
    ) -> None:
        """A follower of this epoch has everything below `fetch_offset`."""
        progress = self._followers.get(replica)
        if progress is None or UNKNOWN < broker_epoch < progress.broker_epoch:
            return  # not a replica, or a late fetch of an earlier broker epoch
        if fetch_offset >= log_end_offset:
            progress.caught_up_ms = now_ms
        elif progress.fetched_ms != UNKNOWN and fetch_offset >= progress.leader_end_offset:
            # The follower has everything up to the log end of its previous fetch, so it was caught up then.
            progress.caught_up_ms = max(progress.caught_up_ms, progress.fetched_ms)
        progress.end_offset = fetch_offset
        progress.log_start_offset = log_start_offset
        progress.broker_epoch = broker_epoch
        progress.fetched_ms = now_ms
        progress.leader_end_offset = log_end_offset

    def low_watermark(self, log_start_offset: int, live: Container[int]) -> int:
        """The least log start offset of the leader, which is given, and the followers on live brokers; -1 if one did not fetch yet."""
        followers = (
            progress.log_start_offset
            for replica, progress in self._followers.items()
            if replica in live
        )
        return min((log_start_offset, *followers))

    # ---- the ISR

    def next_isr(
        self, *, log_end_offset: int, high_watermark: int, now_ms: int, max_lag_ms: int
    ) -> tuple[int, ...] | None:
        """The ISR that should be proposed now; None if the present one is right or a change is under way."""
        if self.proposed_isr is not None:
            return None
        isr, least_offset = self.isr, max(high_watermark, self.epoch_start_offset)
        wanted = tuple(
            replica
            for replica in (self._broker_id, *self._followers)
            if replica == self._broker_id
            or (
                not self._lags(replica, log_end_offset, now_ms, max_lag_ms)
                if replica in isr
                else self._may_join(replica, least_offset)
            )
        )
        return None if set(wanted) == set(isr) else wanted

    def _lags(self, replica: int, log_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        progress = self._followers[replica]
        return progress.end_offset != log_end_offset and now_ms - progress.caught_up_ms > max_lag_ms

    def _may_join(self, replica: int, least_offset: int) -> bool:
        return self._followers[replica].end_offset >= least_offset

    def progress_of(self, replica: int) -> FollowerProgress | None:
        """What is known of a follower; None for the leader itself or nobody."""
        return self._followers.get(replica)

    def broker_epoch(self, replica: int) -> int:
        """The broker epoch of a follower's last fetch; -1 for the leader itself or a broker that has not fetched.

        For a member of a proposal, the broker epoch that was proposed, also when the proposal is sent again: the follower may have been
        restarted in between, perhaps with an empty disk (KIP-903).
        """
        if self.proposed_isr is not None and replica in self._proposed_epochs:
            return self._proposed_epochs[replica]
        progress = self._followers.get(replica)
        return UNKNOWN if progress is None else progress.broker_epoch

    def propose(self, isr: tuple[int, ...]) -> None:
        """A new ISR is proposed to the controller. Until it answers, old and new members count."""
        assert self.proposed_isr is None, "two changes of the ISR at once"
        self._proposed_epochs = {replica: self.broker_epoch(replica) for replica in isr}
        self._decide(self.assignment, isr)

    def give_time(self, now_ms: int) -> None:
        """Restart the lag time of all followers, because they could not fetch from this broker for a while."""
        for progress in self._followers.values():
            progress.caught_up_ms = now_ms

    def withdraw(self) -> None:
        """Drop the proposal, because the controller has certainly not adopted it."""
        self._decide(self.assignment, None)

    def decided(self, assignment: PartitionAssignment, *, now_ms: int) -> None:
        """Adopt the controller's newest decision on this partition."""
        if assignment.partition_epoch <= self.partition_epoch:
            return
        replicas = assignment.replicas
        excluded = set(self.isr) - set(assignment.isr)
        for replica in replicas:
            if replica != self._broker_id and (
                replica not in self._followers or replica in excluded
            ):
                self._followers[replica] = FollowerProgress(now_ms)
        for gone in set(self._followers) - set(replicas):
            del self._followers[gone]
        self._decide(assignment, None)
