"""Counts and times of HTTP requests and connections, as Prometheus text, also under Confluent's names. Pure.

Confluent's REST programs tell of each endpoint by a name (`subjects.versions.register`) in the JMX bean `jersey-metrics`, of
connections in `jetty-metrics`. Names here are those that the usual rules of the JMX exporter make of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from time import perf_counter
from typing import Final

from headrace.services.request_window import CLIENT_ERROR, RequestWindow, Summary, summary

_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
_MS: Final = 1000
EndpointNames = Mapping[tuple[str, str], str]
"""Confluent's name of an endpoint, by method and route."""


class RequestMetrics:
    """Requests by method, route and status; connections."""

    def __init__(
        self,
        prefix: str,
        endpoints: EndpointNames | None = None,
        now_s: Callable[[], float] = perf_counter,
    ) -> None:
        self._prefix = prefix
        self._endpoints = endpoints or {}
        self._now_s = now_s
        self._counts: dict[tuple[str, str, int], int] = defaultdict(int)
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)
        self._buckets: dict[tuple[str, str], list[int]] = {}
        self._windows: dict[tuple[str, str], RequestWindow] = {}
        self._opened = RequestWindow()
        self._closed = RequestWindow()
        self.connections = 0  # that are open

    def observe(
        self,
        method: str,
        route: str,
        status: int,
        seconds: float,
        *,
        request_bytes: int = 0,
        response_bytes: int = 0,
    ) -> None:
        """Note a request that was answered."""
        key = method, route
        self._counts[method, route, status] += 1
        self._seconds[key] += seconds
        buckets = self._buckets.get(key)
        if buckets is None:
            buckets = self._buckets[key] = [0] * (len(_BUCKETS) + 1)
            self._windows[key] = RequestWindow()
        for index in range(len(_BUCKETS) - 1, -1, -1):  # most requests are short
            if seconds > _BUCKETS[index]:
                break
            buckets[index] += 1
        buckets[-1] += 1
        self._windows[key].observe(
            self._now_s(),
            seconds,
            is_error=status >= CLIENT_ERROR,
            request_bytes=request_bytes,
            response_bytes=response_bytes,
        )

    def connection_opened(self) -> None:
        """Note a connection."""
        self.connections += 1
        _note(self._opened, self._now_s())

    def connection_closed(self) -> None:
        """Note the end of a connection."""
        self.connections -= 1
        _note(self._closed, self._now_s())

    def answers(self, is_wanted: Callable[[int], bool]) -> int:
        """How many requests were answered with such a status."""
        return sum(count for (_, _, status), count in self._counts.items() if is_wanted(status))

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
        yield from self._jetty_lines()
        yield from self._jersey_lines()

    # ---- Confluent's names

    def _jetty_lines(self) -> Iterator[str]:
        now_s = self._now_s()
        prefix = f"{self._prefix}_jetty_metrics"
        yield from _line(f"{prefix}_connections_active", "gauge", self.connections)
        opened = summary(self._opened.samples(now_s), now_s)
        closed = summary(self._closed.samples(now_s), now_s)
        for name, found in (("accepted", opened), ("opened", opened), ("closed", closed)):
            rate = found.a_second(found.totals.requests)
            yield from _line(f"{prefix}_connections_{name}_rate", "gauge", rate)
        every = self._summary(list(self._windows), now_s)
        yield from _line(f"{prefix}_request_total", "counter", self.answers(lambda _: True))
        yield from _line(f"{prefix}_request_count", "gauge", every.totals.requests)
        rate = every.a_second(every.totals.requests)
        yield from _line(f"{prefix}_request_rate", "gauge", rate)

    def _jersey_lines(self) -> Iterator[str]:
        now_s = self._now_s()
        yield from self._endpoint_lines("", list(self._windows), now_s)
        by_name: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for key in self._windows:
            name = self._endpoints.get(key)
            if name is not None:
                by_name[_safe(name)].append(key)  # of two names that become one, the sum
        for name, keys in sorted(by_name.items()):
            yield from self._endpoint_lines(f"_{name}", keys, now_s)

    def _endpoint_lines(
        self, endpoint: str, keys: list[tuple[str, str]], now_s: float
    ) -> Iterator[str]:
        found = self._summary(keys, now_s)
        totals = found.totals
        prefix = f"{self._prefix}_jersey_metrics{endpoint}"
        by_class: dict[str, int] = {}
        count = 0
        for (method, route, status), number in self._counts.items():
            if (method, route) in keys:
                count += number
                if status >= CLIENT_ERROR:
                    kind = f"{status // 100}xx"
                    by_class[kind] = by_class.get(kind, 0) + number
        for name, value in (
            ("request_count", totals.requests),
            ("request_rate", found.a_second(totals.requests)),
            ("request_byte_rate", found.a_second(totals.request_bytes)),
            ("request_size_avg", found.average(totals.request_bytes)),
            ("request_size_max", totals.max_request_bytes),
            ("response_rate", found.a_second(totals.requests)),
            ("response_byte_rate", found.a_second(totals.response_bytes)),
            ("response_size_avg", found.average(totals.response_bytes)),
            ("response_size_max", totals.max_response_bytes),
            ("request_latency_avg", found.average(totals.seconds) * _MS),
            ("request_latency_max", totals.max_seconds * _MS),
            ("request_latency_95", found.percentile_s(0.95) * _MS),
            ("request_latency_99", found.percentile_s(0.99) * _MS),
            ("request_error_count", totals.errors),
            ("request_error_rate", found.a_second(totals.errors)),
        ):
            yield from _line(f"{prefix}_{name}", "gauge", value)
        yield from _line(f"{prefix}_request_total", "counter", count)
        name = f"{prefix}_request_error_total"
        yield from _line(name, "counter", sum(by_class.values()))
        for kind, number in sorted(by_class.items()):
            yield f'{name}{{http_status_code="{kind}"}} {number}'

    def _summary(self, keys: list[tuple[str, str]], now_s: float) -> Summary:
        return summary((each for key in keys for each in self._windows[key].samples(now_s)), now_s)


def _note(window: RequestWindow, now_s: float) -> None:
    window.observe(now_s, 0.0, is_error=False, request_bytes=0, response_bytes=0)


def _line(name: str, kind: str, value: float) -> Iterator[str]:
    yield f"# TYPE {name} {kind}"
    yield f"{name} {value if isinstance(value, int) else round(value, 6)}"


def _safe(name: str) -> str:
    """An endpoint's name as the JMX exporter writes it with `lowercaseOutputName`."""
    return "".join(each if each.isalnum() else "_" for each in name).lower()
