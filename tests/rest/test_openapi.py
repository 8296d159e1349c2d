"""schemathesis reads the OpenAPI document of version 3: every answer is documented and of its form, and none is a 5xx.

`HEADRACE_OPENAPI_EXAMPLES=200` asks for more examples of every operation.
"""

import copy
import os
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.checks import unsupported_method

from headrace.rest.http.openapi import document
from tests.support.rest_process import RestProcess

Json = Any

EXAMPLES = int(os.environ.get("HEADRACE_OPENAPI_EXAMPLES", "6"))
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
]
OPERATIONS = sorted(
    (method, path) for path, methods in document()["paths"].items() for method in methods
)


@pytest.fixture(scope="module")
def names(proxy: RestProcess) -> dict[str, list[Json]]:
    """Names for paths: of things that are there, and of some that are not."""
    proxy.create_topic("fuzzed", 2)
    proxy.create_topic("deleted", 1)
    consumer = proxy.consumer("fuzzed")
    consumer.assign(("fuzzed", 0))
    offset = {"topic": "fuzzed", "partition": 0, "offset": 0}
    consumer.do("POST", "/offsets", {"offsets": [offset]}, status=200)
    consumer.delete()
    [broker] = proxy.v3("GET", "/brokers")[1]["data"]
    return {
        "cluster": [proxy.cluster.rpartition("/")[2]],
        "topic": ["fuzzed", "missing", "a b"],
        "partition": [0, 1, 7, -1],
        "broker": [broker["broker_id"], 99],
        "group": ["fuzzed", "nobody"],
        "consumer": ["nobody"],
        "name": ["retention.ms", "log.retention.ms", "nope"],
    }


def narrowed(names: dict[str, list[Json]], method: str, path: str) -> Json:
    """The document with one operation, whose examples lead somewhere and harm nobody."""
    found = copy.deepcopy(document())
    operation = found["paths"][path][method]
    found["paths"] = {path: {method: operation}}
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            choices = names[parameter["name"]]
            if (method, parameter["name"]) == ("delete", "topic"):
                choices = ["deleted", "missing"]
            parameter["schema"] = {"enum": choices}
    # No broker needs topics of millions of partitions.
    few = {"type": "integer", "minimum": -1, "maximum": 3}
    schemas = found["components"]["schemas"]
    for name in ("CreateTopicRequest", "PartitionsCountRequest"):
        schemas[name]["properties"]["partitions_count"] = few
    schemas["CreateTopicRequest"]["properties"]["replicas_assignments"] = {"type": "null"}
    return found


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_answers_are_documented(
    proxy: RestProcess, names: dict[str, list[Json]], method: str, path: str
) -> None:
    schema = schemathesis.openapi.from_dict(narrowed(names, method, path))
    operation = schema[path][method.upper()]

    @given(
        case=st.sampled_from(list(schemathesis.GenerationMode)).flatmap(
            lambda mode: operation.as_strategy(generation_mode=mode)
        )
    )
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def run(case: Any) -> None:
        case.call_and_validate(base_url=f"{proxy.url}/v3", checks=CHECKS)

    run()


def test_the_document_is_served(proxy: RestProcess) -> None:
    assert proxy.ask("GET", "/v3/openapi.json") == (200, document())


def test_every_route_of_version_3_is_documented() -> None:
    documented = {(method.upper(), f"/v3{path}") for method, path in OPERATIONS}
    assert documented == routes_of_version_3()


def routes_of_version_3() -> set[tuple[str, str]]:
    from unittest.mock import MagicMock

    from headrace.rest.http import routes

    anything = MagicMock()
    tables = (
        routes.record_routes(anything),
        routes.cluster_routes(anything),
        routes.config_routes(anything),
        routes.topic_routes(anything),
        routes.group_routes(anything),
    )
    return {(method, path) for table in tables for method, path, _ in table}
