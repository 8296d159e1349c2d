"""Keeping to a rate: how long to wait before the next record. Pure; whoever asks has the clock."""


class Throttle:
    """A rate of so many per second, measured from the start. Below zero there is no limit."""

    def __init__(self, per_second: float, started_s: float) -> None:
        self._per_second = per_second
        self._started_s = started_s

    def wait_s(self, sent: int, now_s: float) -> float:
        """How long to wait after so many, to be no faster than the rate; a rate of 0 waits for ever."""
        if self._per_second < 0:
            return 0.0
        if self._per_second == 0:
            return float("inf")
        return max(0.0, self._started_s + sent / self._per_second - now_s)
