"""Counts and times of HTTP requests, as Prometheus text. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class RequestMetrics:
    """Requests by method, route and status."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._counts: dict[tuple[str, str, int], int] = defaultdict(int)
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._buckets: dict[tuple[str, str], list[int]] = {}

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        """Note a request that was answered."""
        self._counts[method, route, status] += 1
        self._seconds[method, route] += seconds
        buckets = self._buckets.setdefault((method, route), [0] * (len(_BUCKETS) + 1))
        for index, bound in enumerate(_BUCKETS):
            if seconds <= bound:
                buckets[index] += 1
        buckets[-1] += 1

    def lines(self) -> Iterator[str]:
        """The metrics as lines of Prometheus's text format."""
        name = f"{self._prefix}_http_requests_total"
        yield f"# TYPE {name} counter"
        for (method, route, status), count in sorted(self._counts.items()):
            yield f'{name}{{method="{method}",route="{route}",status="{status}"}} {count}'
        name = f"{self._prefix}_http_request_duration_seconds"
        yield f"# TYPE {name} histogram"
        for (method, route), buckets in sorted(self._buckets.items()):
            labels = f'method="{method}",route="{route}"'
            for bound, count in zip((*_BUCKETS, "+Inf"), buckets, strict=True):
                yield f'{name}_bucket{{{labels},le="{bound}"}} {count}'
            yield f"{name}_sum{{{labels}}} {self._seconds[method, route]:.6f}"
            yield f"{name}_count{{{labels}}} {buckets[-1]}"
