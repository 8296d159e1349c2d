"""The table of all routes: method, path, endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.rest import names
from headrace.rest.http.v2_consumers import V2Consumers
from headrace.rest.http.v2_topics import V2Topics
from headrace.rest.http.v3_cluster import V3Cluster
from headrace.rest.http.v3_configs import V3Configs
from headrace.rest.http.v3_groups import V3Groups
from headrace.rest.http.v3_records import V3Records
from headrace.rest.http.v3_topics import V3Topics

Endpoint = Callable[[Request], Awaitable[Response]]
Table = list[tuple[str, str, Endpoint]]

_CLUSTER: Final = "/v3/clusters/{cluster}"
_TOPIC: Final = _CLUSTER + "/topics/{topic}"
_PARTITION: Final = _TOPIC + "/partitions/{partition}"
_BROKER: Final = _CLUSTER + "/brokers/{broker}"
_GROUP: Final = _CLUSTER + "/consumer-groups/{group}"
_CONSUMER: Final = _GROUP + "/consumers/{consumer}"
_IN_PARTITION: Final = "/{topic}/partitions/{partition}"
_INSTANCE: Final = "/consumers/{group}/instances/{instance}"


def record_routes(records: V3Records) -> Table:
    """Producing with version 3. These come first, because they are asked for most."""
    return [
        ("POST", f"{_TOPIC}/records", records.stream),
        ("POST", f"{_TOPIC}/records:batch", records.batch),
    ]


def cluster_routes(cluster: V3Cluster) -> Table:
    """Clusters, brokers, access control lists."""
    return [
        ("GET", "/v3/clusters", cluster.list_clusters),
        ("GET", _CLUSTER, cluster.get_cluster),
        ("GET", f"{_CLUSTER}/brokers", cluster.list_brokers),
        ("GET", f"{_CLUSTER}/acls", cluster.list_acls),
        ("POST", f"{_CLUSTER}/acls", cluster.create_acl),
        ("DELETE", f"{_CLUSTER}/acls", cluster.delete_acls),
        ("POST", f"{_CLUSTER}/acls:batch", cluster.create_acls),
        ("GET", _BROKER, cluster.get_broker),
    ]


def config_routes(configs: V3Configs) -> Table:
    """Configs. Those of all topics or brokers come before those of the one called `-`."""
    table: Table = [
        ("GET", f"{_CLUSTER}/topics/-/configs", configs.configs_of_all_topics),
        ("POST", f"{_CLUSTER}/topics/-/configs:alter", configs.alter_topics),
        ("GET", f"{_CLUSTER}/brokers/-/configs", configs.configs_of_all_brokers),
    ]
    for place in (f"{_CLUSTER}/broker-configs", f"{_BROKER}/configs", f"{_TOPIC}/configs"):
        table += [
            ("GET", place, configs.list_configs),
            ("POST", f"{place}:alter", configs.alter_configs),
            ("GET", place + "/{name}", configs.get_config),
            ("PUT", place + "/{name}", configs.set_config),
            ("DELETE", place + "/{name}", configs.reset_config),
        ]
    return table


def topic_routes(topics: V3Topics) -> Table:
    """Topics, partitions, replicas, reassignments."""
    return [
        ("GET", f"{_CLUSTER}/topics", topics.list_topics),
        ("POST", f"{_CLUSTER}/topics", topics.create_topic),
        (
            "GET",
            f"{_CLUSTER}/topics/-/partitions/-/reassignment",
            topics.all_reassignments,
        ),
        ("GET", _TOPIC, topics.get_topic),
        ("PATCH", _TOPIC, topics.grow_topic),
        ("DELETE", _TOPIC, topics.delete_topic),
        ("GET", f"{_TOPIC}/partitions", topics.list_partitions),
        ("GET", f"{_TOPIC}/partitions/-/reassignment", topics.reassignments_of_topic),
        ("GET", _PARTITION, topics.get_partition),
        ("GET", f"{_PARTITION}/offset", topics.get_offsets),
        ("GET", f"{_PARTITION}/reassignment", topics.get_reassignment),
        ("GET", f"{_PARTITION}/replicas", topics.list_replicas),
        ("GET", _PARTITION + "/replicas/{broker}", topics.get_replica),
        ("GET", f"{_BROKER}/partition-replicas", topics.replicas_of_broker),
    ]


def group_routes(groups: V3Groups) -> Table:
    """Consumer groups."""
    return [
        ("GET", f"{_CLUSTER}/consumer-groups", groups.list_groups),
        ("GET", _GROUP, groups.get_group),
        ("GET", f"{_GROUP}/lag-summary", groups.get_lag_summary),
        ("GET", f"{_GROUP}/lags", groups.list_lags),
        ("GET", f"{_GROUP}/lags{_IN_PARTITION}", groups.get_lag),
        ("GET", f"{_GROUP}/consumers", groups.list_consumers),
        ("GET", _CONSUMER, groups.get_consumer),
        ("GET", f"{_CONSUMER}/assignments", groups.list_assignments),
        ("GET", f"{_CONSUMER}/assignments{_IN_PARTITION}", groups.get_assignment),
    ]


def v2_routes(topics: V2Topics, consumers: V2Consumers) -> Table:
    """Version 2."""
    partition = "/topics/{topic}/partitions/{partition}"
    return [
        ("POST", "/topics/{topic}", topics.produce),
        ("POST", partition, topics.produce),
        ("GET", f"{_INSTANCE}/records", consumers.read),
        ("GET", "/topics", topics.list_topics),
        ("GET", "/topics/{topic}", topics.get_topic),
        ("GET", "/topics/{topic}/partitions", topics.list_partitions),
        ("GET", partition, topics.get_partition),
        ("GET", f"{partition}/offsets", topics.get_offsets),
        ("GET", "/brokers", topics.list_brokers),
        ("POST", "/consumers/{group}", consumers.create),
        ("DELETE", _INSTANCE, consumers.delete),
        ("POST", f"{_INSTANCE}/subscription", consumers.subscribe),
        ("GET", f"{_INSTANCE}/subscription", consumers.subscription),
        ("DELETE", f"{_INSTANCE}/subscription", consumers.unsubscribe),
        ("POST", f"{_INSTANCE}/assignments", consumers.assign),
        ("GET", f"{_INSTANCE}/assignments", consumers.assignment),
        ("POST", f"{_INSTANCE}/positions", consumers.seek),
        ("POST", f"{_INSTANCE}/positions/beginning", consumers.seek_to_beginning),
        ("POST", f"{_INSTANCE}/positions/end", consumers.seek_to_end),
        ("POST", f"{_INSTANCE}/offsets", consumers.commit),
        ("GET", f"{_INSTANCE}/offsets", consumers.committed),
    ]


class _Route(Route):
    """A route whose parameters may contain what a path may not: `%2F` in a group's name is a part of the name."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is for this route, and its parameters."""
        match, found = super().matches(scope)
        if match is not Match.NONE:
            parameters = found["path_params"]
            for name, value in parameters.items():
                if "%" in value:
                    parameters[name] = unquote(value)
        return match, found


def routes(table: Table) -> list[BaseRoute]:
    """One route for each path, in the order of the table; another method than those of the path is answered with 405."""
    by_path: dict[str, dict[str, Endpoint]] = {}
    for method, path, endpoint in table:
        by_path.setdefault(path, {})[method] = endpoint
    return [
        _Route(path, _endpoint(endpoints), methods=list(endpoints))
        for path, endpoints in by_path.items()
    ]


def _endpoint(endpoints: dict[str, Endpoint]) -> Endpoint:
    async def serve(request: Request) -> Response:
        names.require_short(request.path_params.values())
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return serve


class EncodedSlashes:
    """ASGI middleware: leaves slashes that are encoded in a path as they are, so that they separate nothing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and b"%" in scope.get("raw_path", b""):
            segments = scope["raw_path"].decode("ascii", "replace").split("/")
            path = "/".join(
                unquote(each).replace("%", "%25").replace("/", "%2F") for each in segments
            )
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)
