"""Rates, averages and percentiles of the requests of the last half minute or minute. Pure.

Two samples of 30 s, as Kafka's own metrics have them: the older one is dropped as a whole when the newer one is full.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

import msgspec

SAMPLE_S: Final = 30.0
# Upper bounds of the times of requests, in seconds: three to five of them in each tenfold.
BOUNDS_S: Final = (
    *(0.0001, 0.0002, 0.0003, 0.0005, 0.0007),
    *(0.001, 0.0015, 0.002, 0.003, 0.005, 0.007),
    *(0.01, 0.015, 0.02, 0.03, 0.05, 0.07),
    *(0.1, 0.15, 0.2, 0.3, 0.5, 0.7),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0, 30.0, 60.0),
)
CLIENT_ERROR: Final = 400


class Totals(msgspec.Struct, gc=False):
    """Sums over requests."""

    requests: int = 0
    errors: int = 0
    seconds: float = 0.0
    max_seconds: float = 0.0
    request_bytes: int = 0
    max_request_bytes: int = 0
    response_bytes: int = 0
    max_response_bytes: int = 0

    def add(self, other: Totals) -> None:
        """Take in other requests."""
        self.requests += other.requests
        self.errors += other.errors
        self.seconds += other.seconds
        self.max_seconds = max(self.max_seconds, other.max_seconds)
        self.request_bytes += other.request_bytes
        self.max_request_bytes = max(self.max_request_bytes, other.max_request_bytes)
        self.response_bytes += other.response_bytes
        self.max_response_bytes = max(self.max_response_bytes, other.max_response_bytes)


class Sample(msgspec.Struct, gc=False):
    """The requests of one sample: their sums, and how many of them took how long."""

    started_s: float
    totals: Totals
    counts: list[int]

    @classmethod
    def starting(cls, now_s: float) -> Sample:
        """A sample without requests."""
        return cls(now_s, Totals(), [0] * (len(BOUNDS_S) + 1))


class Summary(msgspec.Struct):
    """What a window holds."""

    totals: Totals
    elapsed_s: float
    counts: list[int]

    def a_second(self, amount: float) -> float:
        """An amount of the whole window as a rate."""
        return amount / self.elapsed_s

    def average(self, amount: float) -> float:
        """An amount of the whole window for one request."""
        return amount / self.totals.requests if self.totals.requests else 0.0

    def percentile_s(self, share: float) -> float:
        """The time within which this share of the requests was answered, interpolated between two bounds."""
        rank = share * self.totals.requests
        passed, lower = 0, 0.0
        for bound, count in zip((*BOUNDS_S, self.totals.max_seconds), self.counts, strict=True):
            if count and passed + count >= rank:
                upper = min(bound, self.totals.max_seconds)
                return min(lower, upper) + (upper - min(lower, upper)) * (rank - passed) / count
            passed, lower = passed + count, bound
        return self.totals.max_seconds


class RequestWindow:
    """Note requests with `observe`; `samples` are those that still count."""

    def __init__(self) -> None:
        self._current: Sample | None = None
        self._previous: Sample | None = None

    def observe(
        self,
        now_s: float,
        seconds: float,
        *,
        is_error: bool,
        request_bytes: int,
        response_bytes: int,
    ) -> None:
        """Note a request that was answered now."""
        current = self._current
        if current is None or now_s - current.started_s >= SAMPLE_S:
            current = self._roll(now_s)
        current.counts[bisect_left(BOUNDS_S, seconds)] += 1
        totals = current.totals
        totals.requests += 1
        totals.errors += is_error
        totals.seconds += seconds
        totals.request_bytes += request_bytes
        totals.response_bytes += response_bytes
        totals.max_seconds = max(totals.max_seconds, seconds)
        totals.max_request_bytes = max(totals.max_request_bytes, request_bytes)
        totals.max_response_bytes = max(totals.max_response_bytes, response_bytes)

    def samples(self, now_s: float) -> list[Sample]:
        """The samples that are no older than the window."""
        return [
            each
            for each in (self._previous, self._current)
            if each is not None and now_s - each.started_s < 2 * SAMPLE_S
        ]

    def _roll(self, now_s: float) -> Sample:
        self._previous, self._current = self._current, Sample.starting(now_s)
        return self._current


def summary(samples: Iterable[Sample], now_s: float) -> Summary:
    """The requests of one window, or of several together."""
    totals, counts, started_s = Totals(), [0] * (len(BOUNDS_S) + 1), now_s
    for each in samples:
        totals.add(each.totals)
        counts = [ours + theirs for ours, theirs in zip(counts, each.counts, strict=True)]
        started_s = min(started_s, each.started_s)
    # A first sample of a moment would make one request a high rate.
    return Summary(totals, max(now_s - started_s, SAMPLE_S), counts)
