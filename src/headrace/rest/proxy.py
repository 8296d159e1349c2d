"""The REST proxy as a whole: what serves requests is made here, opened together and closed together. A rim module."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin.admin import Admin
from headrace.rest import errors
from headrace.rest.admin.admin_pool import AdminPool
from headrace.rest.consumers.instances import ConsumerInstances, InstancesSettings
from headrace.rest.http import routes
from headrace.rest.http.answers import EXCEPTION_HANDLERS, answer, v2_answer
from headrace.rest.http.bodies import Bodies
from headrace.rest.http.endpoint_names import ENDPOINT_NAMES
from headrace.rest.http.openapi import document
from headrace.rest.http.v2_consumers import ReadDefaults, V2Consumers
from headrace.rest.http.v2_topics import V2Topics
from headrace.rest.http.v3_cluster import V3Cluster
from headrace.rest.http.v3_configs import V3Configs
from headrace.rest.http.v3_groups import V3Groups
from headrace.rest.http.v3_records import StreamLimits, V3Records
from headrace.rest.http.v3_topics import V3Topics
from headrace.rest.producing.producer import RecordProducer
from headrace.rest.producing.record_writer import RecordWriter
from headrace.rest.schemas.schema_choice import SchemaChoice
from headrace.rest.schemas.schema_threads import SchemaThreads
from headrace.rest.settings import RestSettings
from headrace.rest.topic_directory import TopicDirectory
from headrace.schemas.registry_client import SchemaRegistryClient
from headrace.schemas.registry_transport import TransportSettings
from headrace.services.authentication import Authentication
from headrace.services.http_service import Watched
from headrace.services.request_metrics import RequestMetrics

_log = logging.getLogger(__name__)
_PULSE_S: Final = 5.0


class RestProxy:
    """Made on the event loop that serves it; `opened` brackets its life."""

    def __init__(self, settings: RestSettings, *, cluster_id: str) -> None:
        self._settings = settings
        self._cluster_id = cluster_id
        self._failure: str | None = None
        self._stopping = asyncio.Event()
        self.metrics = RequestMetrics("kafka_rest", ENDPOINT_NAMES)
        self._admins = AdminPool(
            settings.bootstrap_servers, timeout_s=settings.admin_timeout_ms / 1000
        )
        self._bodies = Bodies(
            max_bytes=settings.request_max_bytes, buffer_bytes=settings.buffer_bytes
        )
        self._schemas = SchemaThreads(_schema_choice(settings))
        topics = TopicDirectory(self._admins)
        self._producer = RecordProducer(
            settings.bootstrap_servers,
            settings.clients.producer,
            buffer_bytes=settings.buffer_bytes,
            on_unknown_topic=topics.forget,
        )
        self._writer = RecordWriter(self._producer, self._schemas, topics)
        self._instances = ConsumerInstances(
            InstancesSettings(
                server_id=settings.server_id,
                bootstrap_servers=settings.bootstrap_servers,
                consumer=settings.clients.consumer,
                timeout_ms=settings.consumer_instance_timeout_ms,
                maximum=settings.consumer_instances_max,
            ),
            self._schemas.choice,
        )
        self._records = V3Records(
            self._writer,
            self._bodies,
            cluster_id=cluster_id,
            limits=StreamLimits(settings.record_max_bytes, settings.stream_max_duration_ms / 1000),
            batch_max_entries=settings.batch_max_entries,
            stopping=self._stopping,
        )

    def stop(self) -> None:
        """Requests that last as long as their client likes end soon."""
        self._stopping.set()

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """While it is entered, the proxy serves."""
        pulse = asyncio.create_task(self._pulse(), name="rest-pulse")
        try:
            yield
        finally:
            pulse.cancel()
            await self._instances.close()
            await self._producer.close()
            await self._schemas.close()
            await self._admins.close()

    def application(self) -> Starlette:
        """The ASGI application."""
        table: routes.Table = []
        if self._settings.has_v3:
            table += self._v3_table()
        if self._settings.has_v2:
            table += self._v2_table()
            table += [("GET", "/", self._root), ("POST", "/", self._root)]
        table += [
            ("GET", "/v3/openapi.json", self._openapi),
            ("GET", "/healthz", self._health),
            ("GET", "/metrics", self._metrics_page),
        ]
        return Starlette(
            routes=routes.routes(table),
            middleware=[
                Middleware(Watched, metrics=self.metrics),
                Middleware(Authentication),
                Middleware(routes.EncodedSlashes),
            ],
            exception_handlers=EXCEPTION_HANDLERS,
        )

    def _v3_table(self) -> routes.Table:
        settings = self._settings
        kinds = (V3Cluster, V3Topics, V3Configs, V3Groups)
        cluster, topics, configs, groups = (
            kind(
                self._admins,
                self._bodies,
                cluster_id=self._cluster_id,
                advertised_url=settings.advertised_url,
                name_authority=settings.name_authority,
            )
            for kind in kinds
        )
        assert isinstance(cluster, V3Cluster)
        assert isinstance(topics, V3Topics)
        assert isinstance(configs, V3Configs)
        assert isinstance(groups, V3Groups)
        return [
            *routes.record_routes(self._records),
            *routes.config_routes(configs),
            *routes.topic_routes(topics),
            *routes.group_routes(groups),
            *routes.cluster_routes(cluster),
        ]

    def _v2_table(self) -> routes.Table:
        settings = self._settings
        consumers = V2Consumers(
            self._instances,
            self._bodies,
            defaults=ReadDefaults(
                timeout_ms=settings.consumer_request_timeout_ms,
                max_bytes=settings.consumer_request_max_bytes,
                min_bytes=settings.fetch_min_bytes,
            ),
            advertised_url=settings.advertised_url,
            stopping=self._stopping,
        )
        return routes.v2_routes(V2Topics(self._admins, self._bodies, self._writer), consumers)

    # ---- the program itself

    async def _pulse(self) -> None:
        """Ask now and then whether the cluster answers, and tell when that changes."""
        while True:
            try:
                await self._admins.run(_touch)
            except errors.RestError as trouble:
                if self._failure is None:
                    _log.warning("the cluster does not answer: %s", trouble.message)
                self._failure = trouble.message
            else:
                if self._failure is not None:
                    _log.info("the cluster answers again")
                self._failure = None
            await asyncio.sleep(_PULSE_S)

    async def _root(self, request: Request) -> Response:
        return v2_answer(request, {})

    async def _openapi(self, _: Request) -> Response:
        return answer(document())

    async def _health(self, _: Request) -> Response:
        body = {"status": "ok" if self._failure is None else "failing"}
        if self._failure is not None:
            body["reason"] = self._failure
        return answer(body, status=200 if self._failure is None else 503)

    async def _metrics_page(self, _: Request) -> Response:
        text = "\n".join((*self._gauges(), *self.metrics.lines())) + "\n"
        return Response(text, media_type="text/plain; version=0.0.4")

    def _gauges(self) -> Iterator[str]:
        counts, producer = self._records.counts, self._producer
        for name, kind, value in (
            ("produce_api_metrics_request_total", "counter", counts.requests),
            ("produce_api_metrics_request_byte_total", "counter", counts.request_bytes),
            ("produce_api_metrics_response_total", "counter", counts.responses),
            ("produce_api_metrics_record_error_total", "counter", counts.errors),
            ("produce_api_metrics_streams", "gauge", counts.streams),
            ("producer_records_delivered_total", "counter", producer.delivered),
            ("producer_records_failed_total", "counter", producer.failed),
            ("producer_records_under_way", "gauge", producer.under_way),
            ("producer_buffer_bytes", "gauge", producer.held_bytes),
            ("consumer_instances", "gauge", len(self._instances)),
            ("consumer_instances_expired_total", "counter", self._instances.expired),
            ("admin_requests_busy", "gauge", self._admins.busy),
            ("cluster_reachable", "gauge", int(self._failure is None)),
        ):
            yield f"# TYPE kafka_rest_{name} {kind}"
            yield f"kafka_rest_{name} {value}"


def _touch(admin: Admin) -> None:
    admin.metadata([])


def _schema_choice(settings: RestSettings) -> SchemaChoice | None:
    if not settings.registry_urls:
        return None
    timeout_s = settings.registry_timeout_ms / 1000
    client = SchemaRegistryClient.connect(
        TransportSettings(
            settings.registry_urls,
            request_timeout_s=timeout_s,
            total_timeout_s=timeout_s,
            credentials=settings.registry_credentials,
        ),
        latest_ttl_s=0.0,  # `SchemaThreads` remembers it for a while
        max_wait_s=0.1,  # a read that waits keeps a thread from others
    )
    return SchemaChoice(client)
