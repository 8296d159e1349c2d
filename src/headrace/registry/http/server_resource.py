"""The program itself: its ids, its version, its health, its metrics."""

from __future__ import annotations

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response

from headrace.registry.http.answers import answer
from headrace.registry.http.operations import Operation
from headrace.registry.http.service import RegistryService
from headrace.registry.rules.question_builder import SCHEMA_TYPES
from headrace.services.request_metrics import RequestMetrics


class ServerResource:
    """Tells about one instance."""

    def __init__(
        self, service: RegistryService, metrics: RequestMetrics, *, cluster_id: str, group_id: str
    ) -> None:
        self._service = service
        self._metrics = metrics
        self._cluster_id = cluster_id
        self._group_id = group_id

    def operations(self) -> list[Operation]:
        """The routes."""
        return [
            Operation("GET", "/", self._root, "Nothing, as a sign of life.", dict),
            Operation("POST", "/", self._root, "Nothing, as a sign of life.", dict),
            Operation("GET", "/v1/metadata/id", self._cluster, "The ids of the clusters.", dict),
            Operation("GET", "/v1/metadata/version", self._version, "The version.", dict),
            Operation("GET", "/v1/metadata/deployment", self._deployment, "Nothing here.", dict),
            Operation(
                "GET", "/healthz", self._health, "Whether it serves.", dict,
                errors=(503,), media_type="application/json",
            ),
            Operation(
                "GET", "/metrics", self._page, "Prometheus metrics.", None, media_type="text/plain"
            ),
        ]  # fmt: skip

    async def _root(self, _: Request) -> Response:
        return answer({})

    async def _cluster(self, _: Request) -> Response:
        clusters = {"kafka-cluster": self._cluster_id, "schema-registry-cluster": self._group_id}
        return answer({"scope": {"path": [], "clusters": clusters}})

    async def _version(self, _: Request) -> Response:
        from headrace import __version__

        return answer({"version": __version__, "commitId": ""})

    async def _deployment(self, _: Request) -> Response:
        return answer({"attributes": []})

    async def _health(self, _: Request) -> Response:
        instance = self._service.instance
        failure = instance.failure
        primary = instance.primary
        body = {
            "status": "ok" if failure is None else "failing",
            "primary": None if primary is None else primary.url,
        }
        if failure is not None:
            body["reason"] = failure
        return answer(body, status=200 if failure is None else 503, media_type="application/json")

    async def _page(self, _: Request) -> Response:
        lines = [*self._lines(), *self._metrics.lines()]
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    def _lines(self) -> Iterator[str]:
        from headrace import __version__

        instance, answers = self._service.instance, self._metrics.answers
        created, deleted = instance.counts.created, instance.counts.deleted
        for name, kind, value in (
            ("master_slave_role", "gauge", int(instance.is_primary)),
            ("node_count", "gauge", instance.node_count),
            ("registered_count", "counter", created.total()),
            ("deleted_count", "counter", deleted.total()),
            ("api_success_count", "counter", answers(lambda status: 200 <= status < 300)),
            ("api_failure_count", "counter", answers(lambda status: status >= 400)),
            ("versions", "gauge", self._service.subjects.version_count),
        ):
            yield f"# TYPE kafka_schema_registry_{name} {kind}"
            yield f"kafka_schema_registry_{name} {value}"
        for name, counts in (("schemas_created", created), ("schemas_deleted", deleted)):
            yield f"# TYPE kafka_schema_registry_{name} counter"
            for schema_type in sorted(SCHEMA_TYPES):
                label = f'schema_type="{schema_type.lower()}"'
                yield f"kafka_schema_registry_{name}{{{label}}} {counts[schema_type]}"
        yield "# TYPE kafka_schema_registry_app_info gauge"
        yield f'kafka_schema_registry_app_info{{version="{__version__}"}} 1'
