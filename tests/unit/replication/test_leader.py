"""How far a log is committed, and who is in sync."""

from headrace.controller.values import PartitionState
from headrace.replication.leader import LeaderState

LAG_MS = 1_000


class Led:
    """A partition in the eyes of its leader: the leader's knowledge, the log's end, the high watermark."""

    def __init__(self, leader: LeaderState, end_offset: int) -> None:
        self.state = leader
        self.end_offset = end_offset
        self.high_watermark = 0

    def advance(self) -> bool:
        """Returns whether the high watermark moves."""
        before = self.high_watermark
        self.high_watermark = max(before, self.state.committed_offset(self.end_offset))
        return self.high_watermark > before

    def on_append(self, end_offset: int) -> bool:
        self.end_offset = end_offset
        return self.advance()

    def fetched(
        self, replica: int, offset: int, now_ms: int = 0, broker_epoch: int | None = None
    ) -> bool:
        self.state.on_follower_fetch(
            replica,
            offset,
            log_end_offset=self.end_offset,
            broker_epoch=100 + replica if broker_epoch is None else broker_epoch,
            now_ms=now_ms,
        )
        return self.advance()

    def decided(
        self, replicas: tuple[int, ...], isr: tuple[int, ...], partition_epoch: int
    ) -> bool:
        minimum = self.state.needed_isr
        assignment = PartitionState(
            replicas, isr, 1, 5, partition_epoch=partition_epoch, min_isr=minimum
        )
        self.state.decided(assignment, now_ms=0)
        return self.advance()

    def next_isr(self, now_ms: int = 0) -> tuple[int, ...] | None:
        return self.state.next_isr(
            log_end_offset=self.end_offset,
            high_watermark=self.high_watermark,
            now_ms=now_ms,
            max_lag_ms=LAG_MS,
        )


def leading(
    *, isr: tuple[int, ...] = (1, 2, 3), end_offset: int = 0, needed_isr: int = 1, now_ms: int = 0
) -> Led:
    assignment = PartitionState((1, 2, 3), isr, 1, 5, partition_epoch=10, min_isr=needed_isr)
    return Led(LeaderState(1, assignment, log_end_offset=end_offset, now_ms=now_ms), end_offset)


def test_a_leader_alone_in_its_isr_commits_what_it_appends() -> None:
    leader = leading(isr=(1,))
    assert leader.on_append(7)
    assert leader.high_watermark == 7


def test_the_slowest_in_sync_replica_decides() -> None:
    leader = leading()
    assert not leader.on_append(10)
    assert not leader.fetched(2, 10)
    assert leader.fetched(3, 4)
    assert leader.high_watermark == 4
    assert leader.fetched(3, 10)
    assert leader.high_watermark == 10


def test_a_follower_counts_only_from_its_first_fetch_in_this_epoch_on() -> None:
    leader = leading(end_offset=50)
    assert not leader.advance()
    assert not leader.fetched(2, 50)
    assert leader.high_watermark == 0


def test_a_replica_out_of_sync_does_not_hold_anything_back() -> None:
    leader = leading(isr=(1, 2))
    leader.on_append(10)
    assert leader.fetched(2, 10)
    assert leader.high_watermark == 10
    assert not leader.fetched(3, 2)


def test_strangers_do_not_count() -> None:
    leader = leading(isr=(1, 2))
    leader.on_append(10)
    assert not leader.fetched(9, 10)


def test_the_high_watermark_never_goes_back() -> None:
    leader = leading(isr=(1, 2))
    leader.on_append(10)
    leader.fetched(2, 10)
    assert not leader.fetched(2, 3)
    assert leader.high_watermark == 10


def test_nothing_is_committed_below_the_minimal_isr() -> None:
    leader = leading(isr=(1,), needed_isr=2)
    assert not leader.on_append(10)
    assert leader.high_watermark == 0
    leader.state.proposed_isr = (1, 2)
    leader.fetched(2, 10)
    assert leader.high_watermark == 0, "proposed is not decided"
    assert leader.decided((1, 2, 3), (1, 2), 11)
    assert leader.high_watermark == 10


def test_while_a_change_is_under_way_old_and_proposed_members_count() -> None:
    leader = leading(isr=(1, 2))
    leader.on_append(10)
    leader.fetched(2, 10)
    leader.fetched(3, 10)
    leader.on_append(20)
    leader.state.propose((1, 2, 3))
    assert not leader.fetched(2, 20), "the third may be in the ISR by now and has 10 only"
    assert leader.fetched(3, 20)


def test_a_shrinking_isr_still_waits_for_the_old_member() -> None:
    leader = leading()
    leader.on_append(10)
    leader.fetched(2, 10)
    leader.state.propose((1, 2))
    assert leader.high_watermark == 0
    assert leader.decided((1, 2, 3), (1, 2), 11)
    assert leader.high_watermark == 10


def test_a_follower_joins_at_the_high_watermark_and_the_start_of_the_epoch() -> None:
    leader = leading(isr=(1, 2), end_offset=50)
    leader.fetched(2, 50)
    leader.fetched(3, 49)
    assert leader.next_isr() is None
    leader.fetched(3, 50)
    assert leader.next_isr() == (1, 2, 3)
    assert leader.state.broker_epoch(3) == 103


def test_a_follower_that_stays_behind_leaves() -> None:
    leader = leading()
    leader.on_append(10)
    leader.fetched(2, 10, now_ms=500)
    leader.fetched(3, 10, now_ms=500)
    leader.on_append(20)
    leader.fetched(2, 20, now_ms=1_400)
    leader.fetched(3, 15, now_ms=1_400)
    assert leader.next_isr(1_500) is None
    assert leader.next_isr(1_501) == (1, 2)


def test_a_follower_that_keeps_up_with_a_growing_log_stays() -> None:
    leader = leading()
    for step in range(1, 50):
        now_ms = step * 500
        leader.on_append(step * 10)
        # Always one round behind, because there is always more by the time the answer arrives.
        leader.fetched(2, (step - 1) * 10, now_ms)
        leader.fetched(3, (step - 1) * 10, now_ms)
        assert leader.next_isr(now_ms) is None


def test_an_idle_log_keeps_everybody() -> None:
    leader = leading(end_offset=0)
    leader.fetched(2, 0)
    leader.fetched(3, 0)
    assert leader.next_isr(10**9) is None


def test_one_change_at_a_time() -> None:
    leader = leading(isr=(1,))
    leader.fetched(2, 0)
    leader.state.propose((1, 2))
    assert leader.next_isr() is None
    leader.state.withdraw()
    assert leader.next_isr() == (1, 2)


def test_an_older_word_of_the_controller_is_ignored() -> None:
    leader = leading()
    assert not leader.decided((1, 2, 3), (1,), 10)
    assert len(leader.state.isr) == 3
    leader.decided((1, 2, 3), (1,), 11)
    assert len(leader.state.isr) == 1


def test_replicas_come_and_go_with_a_reassignment() -> None:
    leader = leading(isr=(1, 2))
    leader.decided((1, 2, 4), (1, 2), 11)
    assert leader.state.replica_count == 3
    assert not leader.fetched(3, 99)
    leader.fetched(4, 0)
    leader.fetched(2, 0)
    assert leader.next_isr() == (1, 2, 4)


def test_whoever_left_the_isr_joins_again_only_by_a_new_fetch() -> None:
    leader = leading()
    leader.on_append(10)
    leader.fetched(2, 10)
    leader.fetched(3, 10)
    leader.decided((1, 2, 3), (1, 2), 11)
    assert leader.next_isr() is None, "it may have come back empty"
    leader.fetched(3, 0)
    assert leader.next_isr() is None
    leader.fetched(3, 10)
    assert leader.next_isr() == (1, 2, 3)


def test_a_late_fetch_of_a_former_incarnation_does_not_count() -> None:
    leader = leading(isr=(1, 2))
    leader.on_append(10)
    leader.fetched(2, 0, broker_epoch=200)
    assert not leader.fetched(2, 10, broker_epoch=102)
    assert leader.high_watermark == 0
    assert leader.state.broker_epoch(2) == 200
    assert leader.fetched(2, 10, broker_epoch=200)


def test_a_proposal_means_the_incarnations_that_it_was_made_for() -> None:
    leader = leading(isr=(1, 2), end_offset=5)
    leader.fetched(2, 5)
    leader.fetched(3, 5)
    leader.state.propose((1, 2, 3))
    leader.fetched(3, 0, broker_epoch=999)
    assert leader.state.broker_epoch(3) == 103, (
        "an empty disk may have come back in between (KIP-903)"
    )
    leader.state.withdraw()
    assert leader.state.broker_epoch(3) == 999


def test_followers_that_could_not_fetch_are_given_time() -> None:
    leader = leading()
    leader.on_append(10)
    late_ms = 10 * LAG_MS
    leader.state.give_time(late_ms)
    assert leader.next_isr(late_ms + LAG_MS) is None
    assert leader.next_isr(late_ms + LAG_MS + 1) == (1,)


def test_too_few_are_in_sync_unless_a_change_under_way_may_make_them_enough() -> None:
    leader = leading(isr=(1,), needed_isr=2)
    seen = [leader.state.is_under_min_isr]
    leader.state.propose((1, 2))
    seen.append(leader.state.is_under_min_isr)
    leader.state.withdraw()
    seen.append(leader.state.is_under_min_isr)
    assert seen == [True, False, True]
    assert not leading(isr=(1, 3), needed_isr=2).state.is_under_min_isr
