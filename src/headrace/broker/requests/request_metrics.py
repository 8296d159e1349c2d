"""Metrics of requests: calls, durations and errors by API, as plain numbers that `telemetry` reads."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from headrace.broker.requests.answer_errors import error_codes

# Upper bounds in seconds. A request that finds all it needs in memory takes well under a millisecond.
BUCKET_BOUNDS_S: Final = (
    0.00005,
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)


class ApiTimes:
    """One API's calls. `buckets[n]` counts those up to bound n and above the one before; the last has no bound."""

    __slots__ = ("buckets", "calls", "seconds")

    def __init__(self) -> None:
        self.calls = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(BUCKET_BOUNDS_S) + 1)

    def add(self, seconds: float, calls: int = 1) -> None:
        """Add calls of the same duration."""
        self.calls += calls
        self.seconds += seconds * calls
        self.buckets[bisect_left(BUCKET_BOUNDS_S, seconds)] += calls


class WaitedTimes:
    """Durations of one API's calls that had to wait: in total, before the wait, and of the wait."""

    __slots__ = ("local", "remote", "total")

    def __init__(self) -> None:
        self.total = ApiTimes()
        self.local = ApiTimes()
        self.remote = ApiTimes()


class RequestMetrics:
    """Calls by API key, those that waited among them, and the error codes of the answers by API key and code."""

    __slots__ = ("by_api", "errors", "waited")

    def __init__(self) -> None:
        self.by_api: dict[int, ApiTimes] = {}
        self.waited: dict[int, WaitedTimes] = {}
        self.errors: Counter[tuple[int, int]] = Counter()

    def observe(self, api_key: int, seconds: float, calls: int = 1) -> None:
        """Count answered calls, all of the same duration."""
        times = self.by_api.get(api_key)
        if times is None:
            times = self.by_api[api_key] = ApiTimes()
        times.add(seconds, calls)

    def observe_waited(self, api_key: int, local_s: float, remote_s: float) -> None:
        """Count a call that was answered after a wait for replicas, records, the controller or members of a group."""
        self.observe(api_key, local_s + remote_s)
        times = self.waited.get(api_key)
        if times is None:
            times = self.waited[api_key] = WaitedTimes()
        times.total.add(local_s + remote_s)
        times.local.add(local_s)
        times.remote.add(remote_s)

    def observe_errors(self, api_key: int, answer: object) -> None:
        """Count the error codes of an answer, NONE included, one for each item."""
        self.count_errors(api_key, error_codes(answer))

    def count_errors(self, api_key: int, codes: Mapping[int, int]) -> None:
        """Add numbers of items by error code."""
        for code, count in codes.items():
            self.errors[api_key, code] += count


def quantile_s(buckets: Sequence[int], share: float, no_time: int = 0) -> float:
    """The time that `share` of the calls did not exceed, in proportion within its bucket; `no_time` more took none.

    Needs one call at least.
    """
    rank = share * (sum(buckets) + no_time)
    if rank <= no_time:
        return 0.0
    below = no_time
    lower_s = 0.0
    for count, upper_s in zip(buckets, BUCKET_BOUNDS_S, strict=False):
        if count and below + count >= rank:
            return lower_s + (upper_s - lower_s) * (rank - below) / count
        below += count
        lower_s = upper_s
    return lower_s
