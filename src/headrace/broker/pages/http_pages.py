"""The pages that the broker's HTTP endpoint serves: /metrics and /healthz."""

import json
from collections.abc import Callable, Iterator
from http import HTTPStatus

from headrace.broker.pages.exposition import CONTENT_TYPE
from headrace.broker.pages.health import (
    Health,
    check_health,
    full_disk_problems,
    replica_problems,
    store_problems,
    topic_problems,
)
from headrace.broker.pages.metrics_page import MetricsPage, MetricsSources
from headrace.broker.telemetry.http_endpoint import HttpAnswer, Route
from headrace.clock import Clock


def http_pages(sources: MetricsSources, clock: Clock) -> dict[str, Route]:
    """Routes for an `HttpEndpoint`."""
    page = MetricsPage(sources, clock())
    broker_id = sources.cluster.broker_id
    return {
        "/metrics": lambda: HttpAnswer(HTTPStatus.OK, CONTENT_TYPE, page.pieces(clock())),
        "/healthz": _health_page(
            broker_id,
            lambda: check_health(sources.lifecycle, sources.log_dirs, _problems(sources)),
        ),
    }


def _problems(sources: MetricsSources) -> Iterator[str]:
    yield from store_problems(sources.counts)
    yield from full_disk_problems(sources.log_dirs, sources.partitions)
    yield from sources.live_settings.rejected
    yield from sources.coordinator_faults()
    yield from topic_problems(sources.cluster.state)
    yield from replica_problems(sources.partitions)


def _health_page(broker_id: int, check: Callable[[], Health]) -> Route:
    def answer() -> HttpAnswer:
        health = check()
        status = HTTPStatus.OK if health.is_serving else HTTPStatus.SERVICE_UNAVAILABLE
        body = {"status": health.status, "broker_id": broker_id, "reasons": health.reasons}
        return HttpAnswer(status, "application/json", json.dumps(body) + "\n")

    return answer
