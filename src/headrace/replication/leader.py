"""What a leader knows of its followers, and how far its log is committed (pure).

Rules:
- A follower counts only by fetches made in this leader's own epoch.
- The high watermark is the least end offset among the in-sync replicas, never goes back, and does not move while fewer
  than the minimum are in sync (KIP-966): who left before then still has all that is committed.
- While a change of the ISR is under way, the old and the proposed members both count (the maximal ISR).
- A follower may join the ISR once it has reached the high watermark and the start of this epoch; it leaves when it has not
  been at the leader's end for `replica.lag.time.max.ms`. Whoever has left starts from nothing: it may have come back empty.

Integers in, integers out: this runs for every append and every fetch.
"""

from collections.abc import Container
from typing import Final, Protocol

UNKNOWN: Final = -1


class PartitionAssignment(Protocol):
    """The controller's word on a partition, as far as a replica needs it."""

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
        self.caught_up_ms = now_ms  # a new leader gives everybody in its ISR time to come
        self.fetched_ms = UNKNOWN
        self.leader_end_offset = UNKNOWN  # the leader's, at the last fetch


class LeaderState:
    """One partition's leadership, for one leader epoch."""

    __slots__ = (
        "_broker_id",
        "_end_offset",
        "_epoch_start_offset",
        "_followers",
        "_proposed_epochs",
        "high_watermark",
        "isr",
        "leader_epoch",
        "needed_isr",
        "partition_epoch",
        "proposed_isr",
    )

    def __init__(
        self,
        broker_id: int,
        state: PartitionAssignment,
        *,
        log_end_offset: int,
        high_watermark: int,
        now_ms: int,
    ) -> None:
        assert broker_id in state.isr, (
            f"broker {broker_id} leads without being in sync: {state.isr}"
        )
        self._broker_id = broker_id
        self._end_offset = log_end_offset
        self._epoch_start_offset = log_end_offset
        self._followers = {
            replica: FollowerProgress(now_ms) for replica in state.replicas if replica != broker_id
        }
        self.leader_epoch = state.leader_epoch
        self.partition_epoch = state.partition_epoch
        self.isr = state.isr
        self.needed_isr = state.needed_isr
        self.proposed_isr: tuple[int, ...] | None = None
        self._proposed_epochs: dict[int, int] = {}
        self.high_watermark = high_watermark

    @property
    def replica_count(self) -> int:
        """How many replicas the partition has."""
        return len(self._followers) + 1

    @property
    def is_under_min_isr(self) -> bool:
        """Whether fewer are in sync than acks=all needs; while a change is under way, all of the maximal ISR count."""
        in_sync = len(self.isr)
        if in_sync < self.needed_isr and self.proposed_isr is not None:
            in_sync = len({*self.isr, *self.proposed_isr})
        return in_sync < self.needed_isr

    @property
    def knows_what_is_committed(self) -> bool:
        """Whether the high watermark has reached where this epoch began: until then, more may be committed than it tells."""
        return self.high_watermark >= self._epoch_start_offset

    # ---- progress

    def on_append(self, log_end_offset: int) -> bool:
        """The leader's own log grew. Returns whether the high watermark moved."""
        self._end_offset = log_end_offset
        return self.advance()

    def on_follower_fetch(
        self,
        replica: int,
        fetch_offset: int,
        *,
        broker_epoch: int,
        now_ms: int,
        log_start_offset: int = UNKNOWN,
    ) -> bool:
        """A follower of this epoch has everything below `fetch_offset`. Returns whether the high watermark moved."""
        progress = self._followers.get(replica)
        if progress is None or UNKNOWN < broker_epoch < progress.broker_epoch:
            return False  # a stranger, or a late word of a former incarnation
        if fetch_offset >= self._end_offset:
            progress.caught_up_ms = now_ms
        elif progress.fetched_ms != UNKNOWN and fetch_offset >= progress.leader_end_offset:
            # It has what was there when it last asked: it was caught up then.
            progress.caught_up_ms = max(progress.caught_up_ms, progress.fetched_ms)
        progress.end_offset = fetch_offset
        progress.log_start_offset = log_start_offset
        progress.broker_epoch = broker_epoch
        progress.fetched_ms = now_ms
        progress.leader_end_offset = self._end_offset
        return self.advance()

    def advance(self) -> bool:
        """Move the high watermark as far as it may go. Returns whether it moved."""
        if len(self.isr) < self.needed_isr:
            return False
        committed = self._end_offset
        for replica in self.isr + (self.proposed_isr or ()):
            if replica != self._broker_id:
                committed = min(committed, self._followers[replica].end_offset)
        if committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def low_watermark(self, log_start_offset: int, live: Container[int]) -> int:
        """The least log start offset of the leader, which is given, and the followers on live brokers; -1 if one did not fetch yet."""
        followers = (
            progress.log_start_offset
            for replica, progress in self._followers.items()
            if replica in live
        )
        return min((log_start_offset, *followers))

    # ---- the ISR

    def next_isr(self, *, now_ms: int, max_lag_ms: int) -> tuple[int, ...] | None:
        """The ISR that should be proposed now; None if the present one is right or a change is under way."""
        if self.proposed_isr is not None:
            return None
        wanted = tuple(
            replica
            for replica in (self._broker_id, *self._followers)
            if replica == self._broker_id
            or (replica in self.isr and not self._lags(replica, now_ms, max_lag_ms))
            or (replica not in self.isr and self._may_join(replica))
        )
        return None if set(wanted) == set(self.isr) else wanted

    def _lags(self, replica: int, now_ms: int, max_lag_ms: int) -> bool:
        progress = self._followers[replica]
        return (
            progress.end_offset != self._end_offset and now_ms - progress.caught_up_ms > max_lag_ms
        )

    def _may_join(self, replica: int) -> bool:
        end_offset = self._followers[replica].end_offset
        return end_offset >= self.high_watermark and end_offset >= self._epoch_start_offset

    def progress_of(self, replica: int) -> FollowerProgress | None:
        """What is known of a follower; None for the leader itself or nobody."""
        return self._followers.get(replica)

    def broker_epoch(self, replica: int) -> int:
        """The incarnation that a follower's last fetch came from; -1 for the leader itself or nobody.

        For a member of a proposal the one that was proposed, however often that is asked for: it may have come back in
        between, perhaps with an empty disk (KIP-903).
        """
        if self.proposed_isr is not None and replica in self._proposed_epochs:
            return self._proposed_epochs[replica]
        progress = self._followers.get(replica)
        return UNKNOWN if progress is None else progress.broker_epoch

    def propose(self, isr: tuple[int, ...]) -> None:
        """The controller is being asked: until it answers, old and new members count."""
        assert self.proposed_isr is None, "two changes of the ISR at once"
        self._proposed_epochs = {replica: self.broker_epoch(replica) for replica in isr}
        self.proposed_isr = isr

    def give_time(self, now_ms: int) -> None:
        """The followers could not fetch for a while, which was not their fault."""
        for progress in self._followers.values():
            progress.caught_up_ms = now_ms

    def withdraw(self) -> None:
        """The controller certainly did not take the proposal."""
        self.proposed_isr = None

    def decided(self, state: PartitionAssignment, *, now_ms: int) -> bool:
        """The controller's newest word on this partition. Returns whether the high watermark moved."""
        if state.partition_epoch <= self.partition_epoch:
            return False
        replicas = state.replicas
        excluded = set(self.isr) - set(state.isr)
        self.partition_epoch = state.partition_epoch
        self.isr = state.isr
        self.needed_isr = state.needed_isr
        self.proposed_isr = None
        for replica in replicas:
            if replica != self._broker_id and (
                replica not in self._followers or replica in excluded
            ):
                self._followers[replica] = FollowerProgress(now_ms)
        for gone in set(self._followers) - set(replicas):
            del self._followers[gone]
        return self.advance()
