"""Whether a leader epoch can be one that a partition's state has given out."""

import pytest

from headrace.controller.values import PartitionState


@pytest.mark.parametrize(
    ("former", "epoch", "expected"),
    [
        ((), 0, True),
        ((), 9, True),
        ((), 10, False),
        ((3, 4, 7), 9, True),
        ((3, 4, 7), 4, True),
        ((3, 4, 7), 2, True),
        ((3, 4, 7), -1, True),
        ((3, 4, 7), 5, False),
        ((3, 4, 7), 8, False),
        ((3, 4, 7), 10, False),
    ],
)
def test_epochs_between_those_that_are_known(
    former: tuple[int, ...], epoch: int, expected: bool
) -> None:
    state = PartitionState((1, 2), (1, 2), 1, 9, 4, former_epochs=former)
    assert state.has_given_out(epoch) is expected
