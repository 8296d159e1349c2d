"""The rate at which replicas are copied."""

from headrace.replication.throttle import RateWindow

START_MS = 1_700_000_000_000


def test_the_rate_is_that_of_the_last_eleven_seconds() -> None:
    window = RateWindow()
    assert window.bytes_per_second(START_MS) == 0
    window.note(600, START_MS)
    window.note(400, START_MS + 900)
    assert window.bytes_per_second(START_MS + 900) == 100
    window.note(500, START_MS + 5_000)
    assert window.bytes_per_second(START_MS + 10_999) == 150
    assert window.bytes_per_second(START_MS + 11_000) == 50
    assert window.bytes_per_second(START_MS + 16_000) == 0


def test_a_clock_that_was_put_back_starts_anew() -> None:
    window = RateWindow()
    window.note(1_000, START_MS)
    assert window.bytes_per_second(START_MS - 60_000) == 0
    window.note(10, START_MS - 60_000)
    assert window.bytes_per_second(START_MS - 60_000) == 1
