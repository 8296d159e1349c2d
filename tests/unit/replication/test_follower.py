"""Where a follower's log and its leader's part ways."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.log.leader_epochs import EpochEnd, LeaderEpochs
from headrace.replication.follower import next_fetch, truncation_offset


def test_a_follower_asks_from_its_end_and_names_its_last_epoch() -> None:
    epochs = LeaderEpochs([(0, 0), (3, 10)])
    assert next_fetch(epochs, 15) == (15, 3)
    assert next_fetch(epochs, 10) == (10, 0)
    assert next_fetch(LeaderEpochs(), 0) == (0, -1)


def test_a_common_epoch_is_cut_where_the_shorter_one_ends() -> None:
    epochs = LeaderEpochs([(1, 0)])
    assert truncation_offset(EpochEnd(1, 7), epochs, 10) == 7
    assert truncation_offset(EpochEnd(1, 70), epochs, 10) == 10


def test_an_epoch_the_follower_lacks_sends_it_back_to_an_older_one() -> None:
    epochs = LeaderEpochs([(1, 0), (4, 5)])
    assert truncation_offset(EpochEnd(2, 20), epochs, 10) == 5


def test_a_follower_that_knows_no_epoch_goes_by_the_leader() -> None:
    assert truncation_offset(EpochEnd(2, 3), LeaderEpochs(), 10) == 3
    assert truncation_offset(EpochEnd(-1, 4), LeaderEpochs([(1, 0)]), 10) == 4


Log = list[tuple[int, int]]  # (epoch, number of the record): what two replicas must agree on


def epochs_of(log: Log) -> LeaderEpochs:
    epochs = LeaderEpochs()
    for offset, (epoch, _) in enumerate(log):
        epochs.assign(epoch, offset)
    return epochs


def reconciled(follower: Log, leader: Log) -> Log:
    """The follower's log once the leader no longer finds it diverging."""
    while True:
        fetch = next_fetch(epochs_of(follower), len(follower))
        answer = epochs_of(leader).end_offset_for(fetch.last_fetched_epoch, len(leader))
        if fetch.last_fetched_epoch < 0 or (
            answer.epoch == fetch.last_fetched_epoch and answer.end_offset >= fetch.offset
        ):
            return follower
        assert answer.epoch >= 0, "a leader knows the epochs of all who followed before it"
        follower = follower[: truncation_offset(answer, epochs_of(follower), len(follower))]


terms = st.lists(
    st.tuples(
        st.integers(0, 2),  # who leads
        st.integers(0, 3),  # how many records it writes
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 4)), max_size=3
        ),  # who copies how many
    ),
    max_size=8,
)


@given(terms)
def test_after_any_history_a_follower_ends_with_a_prefix_of_its_leader_and_keeps_what_is_common(
    terms: list[tuple[int, int, list[tuple[int, int]]]],
) -> None:
    logs: list[Log] = [[], [], []]
    number = 0
    for epoch, (leader, writes, copies) in enumerate(terms):
        # A leader of a later epoch marks its start even if it writes nothing; here every leader writes.
        for _ in range(writes + 1):
            logs[leader].append((epoch, number))
            number += 1
        for follower, count in copies:
            if follower == leader:
                continue
            before, target = logs[follower], logs[leader]
            common = 0
            while common < min(len(before), len(target)) and before[common] == target[common]:
                common += 1
            ours = reconciled(before, target)
            assert ours == target[: len(ours)]
            assert len(ours) >= common
            logs[follower] = target[: len(ours) + count]
