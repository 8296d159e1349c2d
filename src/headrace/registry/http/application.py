"""The ASGI application of the registry's HTTP API: its routes, and what happens to a request before its route."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.registry.http.answer_cache import AnswerCache
from headrace.registry.http.answers import EXCEPTION_HANDLERS, Negotiation
from headrace.registry.http.compatibility_resource import CompatibilityResource
from headrace.registry.http.endpoint_names import ENDPOINT_NAMES
from headrace.registry.http.openapi import document
from headrace.registry.http.operations import Operation
from headrace.registry.http.paths import rewritten
from headrace.registry.http.schemas_resource import SchemasResource
from headrace.registry.http.server_resource import ServerResource
from headrace.registry.http.service import FORWARDED, RegistryService
from headrace.registry.http.settings_resource import SettingsResource
from headrace.registry.http.subjects_resource import SubjectsResource
from headrace.registry.instance import Instance
from headrace.registry.state.names import normal, parse_subject, relative
from headrace.registry.state.subjects import Subjects
from headrace.services.authentication import Authentication
from headrace.services.http_service import Watched
from headrace.services.request_metrics import RequestMetrics

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send


def registry_application(instance: Instance, *, cluster_id: str, group_id: str) -> Starlette:
    """The application of one instance."""
    service = RegistryService(instance)
    metrics = RequestMetrics("kafka_schema_registry", ENDPOINT_NAMES)
    operations = [
        *ServerResource(service, metrics, cluster_id=cluster_id, group_id=group_id).operations(),
        *SchemasResource(service).operations(),
        *SubjectsResource(service).operations(),
        *CompatibilityResource(service).operations(),
        *SettingsResource(service).operations(),
    ]
    application = Starlette(
        routes=[*_routes(operations), _document_route(operations)],
        middleware=[
            Middleware(Watched, metrics=metrics),
            Middleware(Authentication),
            Middleware(Negotiation),
            Middleware(AnswerCache, change_number=lambda: service.subjects.change_number),
            Middleware(PathRewriting, subjects=service.subjects),
        ],
        exception_handlers=EXCEPTION_HANDLERS,
    )
    application.router.redirect_slashes = False
    application.state.metrics = metrics
    return application


def _routes(operations: list[Operation]) -> list[Route]:
    return [Route(each.path, each.endpoint, methods=[each.method]) for each in operations]


def _document_route(operations: list[Operation]) -> Route:
    text = msgspec.json.encode(document(operations))

    async def serve(_: Request) -> Response:
        return Response(text, media_type="application/json")

    return Route("/openapi.json", serve, methods=["GET"])


class PathRewriting:
    """ASGI middleware: routes see the path still encoded, without a context in front and without aliases.

    A subject may have a slash in its name, so the parts of a path are told apart before they are decoded.
    """

    def __init__(self, app: ASGIApp, subjects: Subjects) -> None:
        self._app = app
        self._subjects = subjects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            is_forwarded = any(name == FORWARDED.encode() for name, _ in scope["headers"])
            scope["path"], query = rewritten(
                scope["raw_path"].decode("ascii", "replace"),
                scope["query_string"].decode("latin-1"),
                # The instance that forwarded the request has replaced the alias.
                normal if is_forwarded else self._without_alias,
            )
            scope["query_string"] = query.encode("latin-1")
        await self._app(scope, receive, send)

    def _without_alias(self, subject: str) -> str:
        config = self._subjects.config(normal(subject))
        if config is None or not config.alias:
            return subject
        return relative(config.alias, parse_subject(subject).context)
