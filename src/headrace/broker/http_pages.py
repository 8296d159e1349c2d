"""The pages that the broker's HTTP endpoint serves: /metrics and /healthz."""

import json
from collections.abc import Callable
from http import HTTPStatus

from headrace.broker.clock import Clock
from headrace.broker.health import Health, check_health
from headrace.broker.http_endpoint import HttpAnswer, Route
from headrace.broker.metrics.exposition import CONTENT_TYPE
from headrace.broker.metrics_page import MetricsPage, MetricsSources


def http_pages(sources: MetricsSources, clock: Clock) -> dict[str, Route]:
    """Routes for an `HttpEndpoint`."""
    page = MetricsPage(sources, clock())
    broker_id = sources.cluster.broker_id
    return {
        "/metrics": lambda: HttpAnswer(HTTPStatus.OK, CONTENT_TYPE, page.pieces(clock())),
        "/healthz": _health_page(
            broker_id,
            lambda: check_health(
                sources.lifecycle, sources.log_dirs, sources.groups, sources.live_settings.rejected
            ),
        ),
    }


def _health_page(broker_id: int, check: Callable[[], Health]) -> Route:
    def answer() -> HttpAnswer:
        health = check()
        status = HTTPStatus.OK if health.is_serving else HTTPStatus.SERVICE_UNAVAILABLE
        body = {"status": health.status, "broker_id": broker_id, "reasons": health.reasons}
        return HttpAnswer(status, "application/json", json.dumps(body) + "\n")

    return answer
