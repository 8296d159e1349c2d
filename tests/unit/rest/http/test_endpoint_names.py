"""Every endpoint of the proxy has Confluent's name, but those whose name depends on the format of the records."""

from unittest.mock import MagicMock

from headrace.rest.http import routes
from headrace.rest.http.endpoint_names import ENDPOINT_NAMES

BY_FORMAT = {
    ("POST", "/topics/{topic}"),
    ("POST", "/topics/{topic}/partitions/{partition}"),
    ("GET", "/consumers/{group}/instances/{instance}/records"),
}
UNNAMED = {("GET", "/topics/{topic}/partitions/{partition}/offsets")}  # by Confluent's proxy, too
ROOT = {("GET", "/"), ("POST", "/")}


def test_every_endpoint_has_a_name() -> None:
    table = [
        *routes.record_routes(MagicMock()),
        *routes.config_routes(MagicMock()),
        *routes.topic_routes(MagicMock()),
        *routes.group_routes(MagicMock()),
        *routes.cluster_routes(MagicMock()),
        *routes.v2_routes(MagicMock(), MagicMock()),
    ]
    found = {(method, path) for method, path, _ in table}
    assert found - BY_FORMAT - UNNAMED | ROOT == set(ENDPOINT_NAMES)
