"""Clusters, brokers and access control lists of version 3."""

from __future__ import annotations

from typing import Any, Final, TypeVar
from urllib.parse import quote_plus

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin.acls import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
    create_acls,
    delete_acls,
    describe_acls,
)
from headrace.client.cluster_metadata import Cluster, Node
from headrace.rest import errors
from headrace.rest.http.answers import answer
from headrace.rest.http.bodies import whole_number
from headrace.rest.http.v3_routes import V3Routes
from headrace.rest.links import Links
from headrace.rest.media_types import V3_BODIES

Json = Any
E = TypeVar("E", AclResourceType, PatternType, AclOperation, PermissionType)

_NULL_PAYLOAD: Final = "Null input provided. Data is required."


class AclForm(msgspec.Struct, forbid_unknown_fields=True):
    """A binding to add."""

    resource_type: str
    resource_name: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str

    def binding(self) -> AclBinding:
        """Raises RestError where a field means several bindings or none."""
        found = AclBinding(
            resource_type=_named(AclResourceType, self.resource_type, "resource_type"),
            resource_name=self.resource_name,
            pattern_type=_named(PatternType, self.pattern_type, "pattern_type"),
            principal=self.principal,
            host=self.host,
            operation=_named(AclOperation, self.operation, "operation"),
            permission=_named(PermissionType, self.permission, "permission"),
        )
        if found.resource_type in (AclResourceType.ANY, AclResourceType.UNKNOWN):
            raise errors.bad_request("resource_type cannot be ANY")
        if found.pattern_type in (PatternType.ANY, PatternType.MATCH, PatternType.UNKNOWN):
            raise errors.bad_request(f"pattern_type cannot be {found.pattern_type.name}")
        if found.operation in (AclOperation.ANY, AclOperation.UNKNOWN):
            raise errors.bad_request("operation cannot be ANY")
        if found.permission in (PermissionType.ANY, PermissionType.UNKNOWN):
            raise errors.bad_request("permission cannot be ANY")
        return found


class AclsForm(msgspec.Struct, forbid_unknown_fields=True):
    """Bindings to add."""

    data: list[AclForm]


class V3Cluster(V3Routes):
    """The routes."""

    # ---- clusters

    async def list_clusters(self, request: Request) -> Response:
        """GET /v3/clusters."""
        cluster = await self.admins.run(_fresh)
        links = self.links(request)
        found = links.collection("KafkaClusterList", (), [self._cluster(links, cluster)])
        found["metadata"]["self"] = links.url().rpartition("/")[0]
        return answer(found)

    async def get_cluster(self, request: Request) -> Response:
        """GET /v3/clusters/{cluster}."""
        cluster = await self.ask(request, _fresh)
        return answer(self._cluster(self.links(request), cluster))

    @staticmethod
    def _cluster(links: Links, cluster: Cluster) -> Json:
        controller = cluster.controller_id
        return links.resource(
            "KafkaCluster",
            (),
            (),
            controller=None if controller < 0 else links.related("brokers", controller),
            acls=links.related("acls"),
            brokers=links.related("brokers"),
            broker_configs=links.related("broker-configs"),
            consumer_groups=links.related("consumer-groups"),
            topics=links.related("topics"),
            partition_reassignments=links.related("topics", "-", "partitions", "-", "reassignment"),
        )

    # ---- brokers

    async def list_brokers(self, request: Request) -> Response:
        """GET …/brokers."""
        cluster = await self.ask(request, _fresh)
        links = self.links(request)
        nodes = sorted(cluster.nodes.values(), key=lambda node: node.broker_id)
        return answer(
            links.collection(
                "KafkaBrokerList", ("brokers",), [_broker(links, each) for each in nodes]
            )
        )

    async def get_broker(self, request: Request) -> Response:
        """GET …/brokers/{broker}."""
        number = whole_number(request, "broker")
        node = (await self.ask(request, _fresh)).nodes.get(number)
        if node is None:
            raise errors.not_found()
        return answer(_broker(self.links(request), node))

    # ---- access control lists

    async def list_acls(self, request: Request) -> Response:
        """GET …/acls."""
        wanted = _filter(request, "ANY")
        for name, value in _enums(wanted):
            if value.name == "UNKNOWN":
                raise errors.bad_request(f"{name} cannot be UNKNOWN")
        found = await self.ask(request, lambda admin: describe_acls(admin, wanted))
        links = self.links(request)
        body = links.collection(
            "KafkaAclList", ("acls",), [self._acl(links, each) for each in found]
        )
        body["metadata"]["self"] += _query(wanted)
        return answer(body)

    async def create_acl(self, request: Request) -> Response:
        """POST …/acls."""
        form = await self.bodies.required_form(request, AclForm, V3_BODIES, _NULL_PAYLOAD)
        binding = form.binding()
        await self.ask(request, lambda admin: create_acls(admin, [binding]))
        created = Response(status_code=201)
        created.headers["location"] = self.links(request).url("acls") + _query(binding)
        return created

    async def create_acls(self, request: Request) -> Response:
        """POST …/acls:batch."""
        form = await self.bodies.required_form(request, AclsForm, V3_BODIES, _NULL_PAYLOAD)
        bindings = [each.binding() for each in form.data]
        await self.ask(request, lambda admin: create_acls(admin, bindings))
        return Response(status_code=201)

    async def delete_acls(self, request: Request) -> Response:
        """DELETE …/acls."""
        wanted = _filter(request, "UNKNOWN")
        for name, value in _enums(wanted):
            if value.name == "UNKNOWN":
                raise errors.bad_request(f"{name} cannot be unspecified or UNKNOWN")
        deleted = await self.ask(request, lambda admin: delete_acls(admin, wanted))
        links = self.links(request)
        return answer({"data": [self._acl(links, each) for each in deleted]})

    def _acl(self, links: Links, binding: AclBinding) -> Json:
        return {
            "kind": "KafkaAcl",
            "metadata": {"self": links.url("acls") + _query(binding), "resource_name": None},
            "cluster_id": self.cluster_id,
            "resource_type": binding.resource_type.name,
            "resource_name": binding.resource_name,
            "pattern_type": binding.pattern_type.name,
            "principal": binding.principal,
            "host": binding.host,
            "operation": binding.operation.name,
            "permission": binding.permission.name,
        }


def _fresh(admin: Any) -> Cluster:
    """The cluster as it is now, not as it was when this client was used last."""
    admin.metadata([])
    cluster: Cluster = admin.cluster()
    return cluster


def _broker(links: Links, node: Node) -> Json:
    place = ("brokers", node.broker_id)
    return links.resource(
        "KafkaBroker",
        place,
        (("broker", node.broker_id),),
        broker_id=node.broker_id,
        host=node.address.host,
        port=node.address.port,
        rack=node.rack,
        configs=links.related(*place, "configs"),
        partition_replicas=links.related(*place, "partition-replicas"),
    )


def _filter(request: Request, default: str) -> AclFilter:
    query = request.query_params
    return AclFilter(
        resource_type=_named(AclResourceType, query.get("resource_type", default), "resource_type"),
        resource_name=query.get("resource_name") or None,
        pattern_type=_named(PatternType, query.get("pattern_type", default), "pattern_type"),
        principal=query.get("principal") or None,
        host=query.get("host") or None,
        operation=_named(AclOperation, query.get("operation", default), "operation"),
        permission=_named(PermissionType, query.get("permission", default), "permission"),
    )


def _named(kind: type[E], text: str, name: str) -> E:
    try:
        return kind[text.upper()]
    except KeyError:
        raise errors.bad_request(
            f"{name}={text}: expected one of {', '.join(kind.__members__)}"
        ) from None


def _enums(wanted: AclFilter) -> tuple[tuple[str, Any], ...]:
    return (
        ("resource_type", wanted.resource_type),
        ("pattern_type", wanted.pattern_type),
        ("operation", wanted.operation),
        ("permission", wanted.permission),
    )


def _query(of: AclFilter | AclBinding) -> str:
    fields = {
        "resource_type": of.resource_type.name,
        "resource_name": of.resource_name or "",
        "pattern_type": of.pattern_type.name,
        "principal": of.principal or "",
        "host": of.host or "",
        "operation": of.operation.name,
        "permission": of.permission.name,
    }
    return "?" + "&".join(f"{name}={quote_plus(value)}" for name, value in fields.items())
