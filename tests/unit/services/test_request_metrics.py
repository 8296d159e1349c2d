"""Requests under Confluent's names, and the window of their rates and percentiles."""

import pytest

from headrace.registry.http.endpoint_names import ENDPOINT_NAMES as REGISTRY_NAMES
from headrace.rest.http.endpoint_names import ENDPOINT_NAMES as REST_NAMES
from headrace.services.request_metrics import RequestMetrics
from headrace.services.request_window import RequestWindow, summary

GET = ("GET", "/schemas/ids/{id}")


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def values(metrics: RequestMetrics) -> dict[str, float]:
    lines = [line for line in metrics.lines() if not line.startswith("#")]
    found = {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
    assert len(found) == len(lines), "a name came twice"
    return found


def observed(window: RequestWindow, now_s: float, *seconds: float) -> None:
    for each in seconds:
        window.observe(now_s, each, is_error=False, request_bytes=0, response_bytes=0)


def test_requests_under_confluents_names() -> None:
    clock = Clock()
    metrics = RequestMetrics("sr", {GET: "schemas.ids.get-schema.only"}, clock)
    for _ in range(59):
        metrics.observe(*GET, 200, 0.004, request_bytes=10, response_bytes=100)
    metrics.observe(*GET, 404, 0.1, response_bytes=400)
    metrics.observe("GET", "unknown", 404, 0.001)
    found = values(metrics)
    endpoint = "sr_jersey_metrics_schemas_ids_get_schema_only"
    assert found[f"{endpoint}_request_total"] == found[f"{endpoint}_request_count"] == 60
    assert found[f"{endpoint}_request_rate"] == 2  # of the 30 s of a sample
    assert found[f"{endpoint}_request_size_max"] == 10
    assert found[f"{endpoint}_response_size_avg"] == pytest.approx(105)
    assert found[f"{endpoint}_response_byte_rate"] == pytest.approx(210)
    assert found[f"{endpoint}_request_latency_max"] == 100
    assert found[f"{endpoint}_request_latency_avg"] == pytest.approx(5.6)
    assert 3 <= found[f"{endpoint}_request_latency_95"] <= 5
    assert 70 <= found[f"{endpoint}_request_latency_99"] <= 100
    assert found[f"{endpoint}_request_error_total"] == 1
    assert found[f'{endpoint}_request_error_total{{http_status_code="4xx"}}'] == 1
    assert found["sr_jersey_metrics_request_total"] == 61  # what has no name is in the sum
    assert found["sr_jersey_metrics_request_error_total"] == 2
    assert found["sr_jetty_metrics_request_total"] == 61
    assert metrics.answers(lambda status: status >= 400) == 2


def test_rates_end_and_totals_stay() -> None:
    clock = Clock()
    metrics = RequestMetrics("sr", {GET: "e"}, clock)
    metrics.observe(*GET, 500, 0.01)
    clock.now_s += 61
    found = values(metrics)
    assert found["sr_jersey_metrics_e_request_total"] == 1
    assert found["sr_jersey_metrics_e_request_error_total"] == 1
    for name in ("request_count", "request_rate", "request_latency_max", "request_error_rate"):
        assert found[f"sr_jersey_metrics_e_{name}"] == 0


def test_connections() -> None:
    clock = Clock()
    metrics = RequestMetrics("sr", {}, clock)
    for _ in range(3):
        metrics.connection_opened()
    metrics.connection_closed()
    found = values(metrics)
    assert found["sr_jetty_metrics_connections_active"] == 2
    assert found["sr_jetty_metrics_connections_opened_rate"] == pytest.approx(0.1)
    assert found["sr_jetty_metrics_connections_closed_rate"] == pytest.approx(1 / 30, abs=1e-5)


def test_a_window_has_two_samples() -> None:
    window = RequestWindow()
    observed(window, 0, 1.0)
    observed(window, 30, 2.0)
    both = summary(window.samples(45), 45)
    assert (both.totals.requests, both.elapsed_s, both.totals.max_seconds) == (2, 45, 2.0)
    newer = summary(window.samples(60), 60)
    assert (newer.totals.requests, newer.elapsed_s) == (1, 30)
    observed(window, 61, 3.0)  # the third sample drops the first
    assert summary(window.samples(61), 61).totals.requests == 2


@pytest.mark.parametrize("seconds", [0.0, 0.00005, 0.0123, 0.5, 59.0, 61.0, 500.0])
def test_percentiles_lie_between_bounds_and_never_above_the_longest(seconds: float) -> None:
    window = RequestWindow()
    observed(window, 0, *[seconds] * 100)
    found = summary(window.samples(0), 0)
    assert found.percentile_s(0.5) <= found.percentile_s(0.99) <= seconds
    assert found.percentile_s(0.99) >= seconds / 2.1


def test_nothing_was_asked() -> None:
    found = summary([], 5)
    assert found.percentile_s(0.99) == found.average(found.totals.seconds) == 0


@pytest.mark.parametrize("names", [REGISTRY_NAMES, REST_NAMES])
def test_endpoints_never_share_a_line(names: dict[tuple[str, str], str]) -> None:
    metrics = RequestMetrics("p", names, Clock())
    for method, route in names:
        metrics.observe(method, route, 200, 0.001)
    assert len(values(metrics)) > 100
