import pytest

from headrace.log.leader_epochs import UNKNOWN_EPOCH_END, EpochEnd, EpochEntry, LeaderEpochs

ENTRIES = [(2, 10), (4, 20), (7, 50)]


@pytest.fixture
def epochs() -> LeaderEpochs:
    return LeaderEpochs(ENTRIES)


def test_nothing_is_known_of_an_empty_log() -> None:
    epochs = LeaderEpochs()
    assert (epochs.latest, epochs.entries) == (-1, ())
    assert epochs.epoch_at(0) == -1
    assert epochs.end_offset_for(0, 10) == UNKNOWN_EPOCH_END
    assert not epochs.truncate_from_end(0)
    assert not epochs.truncate_from_start(5)


def test_news_and_no_news(epochs: LeaderEpochs) -> None:
    assert not epochs.assign(7, 50)
    assert not epochs.assign(7, 60)
    assert not epochs.assign(-1, 70)
    assert epochs.assign(8, 70)
    assert epochs.entries[-1] == EpochEntry(8, 70)


@pytest.mark.parametrize(
    ("new", "left"),
    [
        ((7, 40), [(2, 10), (4, 20), (7, 40)]),
        ((9, 20), [(2, 10), (9, 20)]),
        ((3, 60), [(2, 10), (3, 60)]),
        ((1, 5), [(1, 5)]),
    ],
)
def test_a_contradiction_drops_what_it_contradicts(
    epochs: LeaderEpochs, new: tuple[int, int], left: list[tuple[int, int]]
) -> None:
    assert epochs.assign(*new)
    assert list(epochs.entries) == left


@pytest.mark.parametrize(
    ("epoch", "end"),
    [
        (-1, UNKNOWN_EPOCH_END),
        (0, EpochEnd(0, 10)),
        (2, EpochEnd(2, 20)),
        (3, EpochEnd(2, 20)),
        (4, EpochEnd(4, 50)),
        (6, EpochEnd(4, 50)),
        (7, EpochEnd(7, 99)),
        (8, UNKNOWN_EPOCH_END),
    ],
)
def test_where_an_epoch_ended(epochs: LeaderEpochs, epoch: int, end: EpochEnd) -> None:
    assert epochs.end_offset_for(epoch, 99) == end


@pytest.mark.parametrize(
    ("offset", "epoch"), [(0, -1), (9, -1), (10, 2), (19, 2), (20, 4), (50, 7), (900, 7)]
)
def test_who_wrote_an_offset(epochs: LeaderEpochs, offset: int, epoch: int) -> None:
    assert epochs.epoch_at(offset) == epoch


@pytest.mark.parametrize(
    ("end_offset", "left"), [(51, 3), (50, 2), (21, 2), (20, 1), (10, 0), (0, 0)]
)
def test_truncation_from_the_end(epochs: LeaderEpochs, end_offset: int, left: int) -> None:
    assert epochs.truncate_from_end(end_offset) == (left < 3)
    assert list(epochs.entries) == ENTRIES[:left]


@pytest.mark.parametrize(
    ("start_offset", "left"),
    [
        (5, ENTRIES),
        (10, ENTRIES),
        (15, [(2, 15), (4, 20), (7, 50)]),
        (20, [(4, 20), (7, 50)]),
        (60, [(7, 60)]),
    ],
)
def test_truncation_from_the_start_keeps_the_epoch_it_falls_into(
    epochs: LeaderEpochs, start_offset: int, left: list[tuple[int, int]]
) -> None:
    assert epochs.truncate_from_start(start_offset) == (left != ENTRIES)
    assert list(epochs.entries) == left


def test_clear(epochs: LeaderEpochs) -> None:
    epochs.clear()
    assert epochs.latest == -1
