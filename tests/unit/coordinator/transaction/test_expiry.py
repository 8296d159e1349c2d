import pytest

from headrace.coordinator.transaction.settings import TransactionSettings
from tests.unit.coordinator.transaction.transaction_story import P0, Story, producer

SETTINGS = TransactionSettings(id_expiration_ms=100_000, expiry_check_interval_ms=10_000)


def test_an_unused_id_is_forgotten_and_begins_anew() -> None:
    story = Story(SETTINGS)
    story.initialize()
    story.sleep(99_999)
    assert "t" in story.machine.state.transactions
    story.sleep(10_000)
    assert "t" not in story.machine.state.transactions
    assert story.log[-1][1] is None
    story.fail_over()
    assert story.machine.state.transactions == {}
    assert story.initialize().producer == producer(1_002, 0)


def test_use_keeps_an_id() -> None:
    story = Story(SETTINGS)
    given = story.begin()
    story.end(given)
    story.write_markers()
    story.sleep(90_000)
    story.add(given, P0)
    story.end(given)
    story.write_markers()
    story.sleep(50_000)
    assert "t" in story.machine.state.transactions


@pytest.mark.parametrize("is_decided", [True, False])
def test_a_transaction_that_is_not_complete_keeps_its_id(is_decided: bool) -> None:
    story = Story(
        TransactionSettings(
            id_expiration_ms=100_000,
            expiry_check_interval_ms=10_000,
            abort_check_interval_ms=10**9,
        )
    )
    given = story.begin()
    if is_decided:
        story.end(given)
    story.sleep(1_000_000)
    assert "t" in story.machine.state.transactions
