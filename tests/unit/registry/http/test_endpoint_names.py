"""Every endpoint of the registry has Confluent's name, but those that Confluent's registry does not name."""

from unittest.mock import Mock

from headrace.registry.http.application import registry_application
from headrace.registry.http.endpoint_names import ENDPOINT_NAMES

UNNAMED = {"/", "/healthz", "/metrics", "/openapi.json"}


def test_every_endpoint_has_a_name() -> None:
    application = registry_application(Mock(), cluster_id="c", group_id="g")
    routes = {
        (method, route.path)  # type: ignore[attr-defined]
        for route in application.routes
        for method in route.methods  # type: ignore[attr-defined]
    }
    named = {(method, path) for method, path in routes if path not in UNNAMED and method != "HEAD"}
    assert named == set(ENDPOINT_NAMES)
