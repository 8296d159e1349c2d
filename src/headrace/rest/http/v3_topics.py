"""Topics, partitions, replicas and reassignments of version 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin.admin import Admin
from headrace.client.admin.reassignments import Reassignment, list_reassignments
from headrace.client.admin.topics import (
    BROKER_DEFAULT,
    create_topic,
    delete_topics,
    grow_topics,
)
from headrace.ids import TopicPartition
from headrace.rest import errors, names
from headrace.rest.admin.topic_view import PartitionView, TopicView, all_topics, edges, one_topic
from headrace.rest.http.answers import answer, nothing
from headrace.rest.http.bodies import whole_number
from headrace.rest.http.v3_routes import V3Routes
from headrace.rest.links import Links
from headrace.rest.media_types import V3_BODIES

Json = Any

_EMPTY: Final = "Request body is empty. Data is required."
_EDGES: Final = "earliest_and_latest"

_Int = Annotated[int, msgspec.Meta(ge=-(2**31), lt=2**31)]
_Short = Annotated[int, msgspec.Meta(ge=-(2**15), lt=2**15)]


class ConfigForm(msgspec.Struct, forbid_unknown_fields=True):
    """A config of a new topic."""

    name: str
    value: str | None = None


class CreateTopicForm(msgspec.Struct, forbid_unknown_fields=True):
    """A new topic."""

    topic_name: str
    partitions_count: _Int | None = None
    replication_factor: _Short | None = None
    replicas_assignments: dict[_Int, list[_Int]] | None = None
    configs: list[ConfigForm] | None = None
    validate_only: bool | None = None


class PartitionsCountForm(msgspec.Struct, forbid_unknown_fields=True):
    """More partitions for a topic."""

    partitions_count: _Int


class V3Topics(V3Routes):
    """The routes."""

    # ---- topics

    async def list_topics(self, request: Request) -> Response:
        """GET …/topics."""
        wants = _flag(request, "includeAuthorizedOperations") or _flag(
            request, "include_authorized_operations"
        )
        found = await self.ask(request, lambda admin: all_topics(admin, with_operations=wants))
        links = self.links(request)
        data = [_topic(links, each) for each in found]
        return answer(links.collection("KafkaTopicList", ("topics",), data))

    async def get_topic(self, request: Request) -> Response:
        """GET …/topics/{topic}."""
        wants = _flag(request, "include_authorized_operations")
        name = request.path_params["topic"]
        found = await self.ask(request, lambda admin: one_topic(admin, name, with_operations=wants))
        return answer(_topic(self.links(request), found))

    async def create_topic(self, request: Request) -> Response:
        """POST …/topics."""
        form = await self.bodies.required_form(request, CreateTopicForm, V3_BODIES, _EMPTY)
        name = form.topic_name
        if not names.is_topic(name):
            raise errors.invalid_payload("Invalid topic name.")
        configs = {each.name: each.value for each in form.configs or ()}
        is_trial = bool(form.validate_only)

        def create(admin: Admin) -> TopicView:
            created = create_topic(
                admin,
                name,
                partitions=_or_default(form.partitions_count),
                replication_factor=_or_default(form.replication_factor),
                assignment=form.replicas_assignments,
                configs=configs,
                validate_only=is_trial,
            )
            # A broker that does not say how it created the topic leaves what was asked for.
            assignment = form.replicas_assignments or {}
            count = created.partitions if created.partitions > 0 else len(assignment)
            factor = created.replication_factor
            if factor < 0:
                factor = len(next(iter(assignment.values()), ()))
            replicas = tuple(range(factor))
            partitions = [
                PartitionView(name, number, None, replicas, frozenset())
                for number in range(count if count > 0 else form.partitions_count or 1)
            ]
            return TopicView(name, False, partitions, [])

        created = await self.ask(request, create)
        links = self.links(request)
        found = answer(_topic(links, created), status=200 if is_trial else 201)
        found.headers["location"] = links.url("topics", name)
        return found

    async def grow_topic(self, request: Request) -> Response:
        """PATCH …/topics/{topic}."""
        form = await self.bodies.required_form(
            request,
            PartitionsCountForm,
            V3_BODIES,
            "Request body is empty. Partitions_count is required.",
        )
        name = request.path_params["topic"]

        def grow(admin: Admin) -> TopicView:
            grow_topics(admin, {name: form.partitions_count}, {})
            return one_topic(admin, name)

        return answer(_topic(self.links(request), await self.ask(request, grow)))

    async def delete_topic(self, request: Request) -> Response:
        """DELETE …/topics/{topic}."""
        name = request.path_params["topic"]
        await self.ask(request, lambda admin: delete_topics(admin, [name]))
        return nothing()

    # ---- partitions

    async def list_partitions(self, request: Request) -> Response:
        """GET …/topics/{topic}/partitions."""
        name = request.path_params["topic"]
        topic = await self.ask(request, lambda admin: one_topic(admin, name))
        links = self.links(request)
        data = [_partition(links, each) for each in topic.partitions]
        place = ("topics", name, "partitions")
        return answer(links.collection("KafkaPartitionList", place, data))

    async def get_partition(self, request: Request) -> Response:
        """GET …/partitions/{partition}."""
        return answer(_partition(self.links(request), await self._wanted_partition(request)))

    async def get_offsets(self, request: Request) -> Response:
        """GET …/partitions/{partition}/offset."""
        kind = request.query_params.get("offset_type", _EDGES)
        if kind != _EDGES:
            raise errors.bad_request(f"offset_type:{kind} is invalid")
        name, number = request.path_params["topic"], whole_number(request, "partition")

        def find(admin: Admin) -> tuple[int, int]:
            place = TopicPartition(name, number)
            if one_topic(admin, name).partition(number) is None:
                raise errors.partition_not_found()
            return edges(admin, [place])[place]

        first, last = await self.ask(request, find)
        return answer(
            self.links(request).resource(
                "KafkaPartitionWithOffsets",
                ("topics", name, "partitions", number, "offset"),
                (("topic", name), ("partition", number), ("offset_type", kind)),
                topic_name=name,
                partition_id=number,
                earliest_offset=first,
                latest_offset=last,
            )
        )

    async def _wanted_partition(self, request: Request) -> PartitionView:
        name, number = request.path_params["topic"], whole_number(request, "partition")
        topic = await self.ask(request, lambda admin: one_topic(admin, name))
        found = topic.partition(number)
        if found is None:
            raise errors.not_found()
        return found

    # ---- replicas

    async def list_replicas(self, request: Request) -> Response:
        """GET …/partitions/{partition}/replicas."""
        found = await self._wanted_partition(request)
        links = self.links(request)
        place = ("topics", found.topic, "partitions", found.number, "replicas")
        data = [_replica(links, found, each) for each in found.replicas]
        return answer(links.collection("KafkaReplicaList", place, data))

    async def get_replica(self, request: Request) -> Response:
        """GET …/replicas/{broker}."""
        broker = whole_number(request, "broker")
        found = await self._wanted_partition(request)
        if broker not in found.replicas:
            raise errors.not_found()
        return answer(_replica(self.links(request), found, broker))

    async def replicas_of_broker(self, request: Request) -> Response:
        """GET …/brokers/{broker}/partition-replicas."""
        broker = whole_number(request, "broker")

        def find(admin: Admin) -> list[PartitionView]:
            topics = all_topics(admin)
            admin.metadata([])
            if broker not in admin.cluster().nodes:
                raise errors.not_found(f"Broker {broker} cannot be found.")
            return [
                partition
                for topic in topics
                for partition in topic.partitions
                if broker in partition.replicas
            ]

        found = await self.ask(request, find)
        links = self.links(request)
        place = ("brokers", broker, "partition-replicas")
        data = [_replica(links, each, broker) for each in found]
        return answer(links.collection("KafkaReplicaList", place, data))

    # ---- reassignments

    async def all_reassignments(self, request: Request) -> Response:
        """GET …/topics/-/partitions/-/reassignment."""
        return await self._reassignments(request, "-")

    async def reassignments_of_topic(self, request: Request) -> Response:
        """GET …/topics/{topic}/partitions/-/reassignment."""
        return await self._reassignments(request, request.path_params["topic"])

    async def get_reassignment(self, request: Request) -> Response:
        """GET …/partitions/{partition}/reassignment."""
        place = TopicPartition(request.path_params["topic"], whole_number(request, "partition"))
        found = (await self.ask(request, list_reassignments)).get(place)
        if found is None:
            raise errors.not_found()
        return answer(_reassignment(self.links(request), place, found, "reassignment"))

    async def _reassignments(self, request: Request, topic: str) -> Response:
        found: Mapping[TopicPartition, Reassignment] = await self.ask(request, list_reassignments)
        links = self.links(request)
        data = [
            _reassignment(links, place, found[place], "reassignments")
            for place in sorted(found)
            if topic in ("-", place.topic)
        ]
        place = ("topics", topic, "partitions", "-", "reassignment")
        return answer(links.collection("KafkaReassignmentList", place, data))


def _topic(links: Links, topic: TopicView) -> Json:
    place = ("topics", topic.name)
    return links.resource(
        "KafkaTopic",
        place,
        (("topic", topic.name),),
        topic_name=topic.name,
        is_internal=topic.is_internal,
        replication_factor=topic.replication_factor,
        partitions_count=len(topic.partitions),
        partitions=links.related(*place, "partitions"),
        configs=links.related(*place, "configs"),
        partition_reassignments=links.related(*place, "partitions", "-", "reassignment"),
        authorized_operations=topic.authorized_operations,
    )


def _partition(links: Links, partition: PartitionView) -> Json:
    place = ("topics", partition.topic, "partitions", partition.number)
    leader = partition.leader
    return links.resource(
        "KafkaPartition",
        place,
        (("topic", partition.topic), ("partition", partition.number)),
        topic_name=partition.topic,
        partition_id=partition.number,
        leader=None if leader is None else links.related(*place, "replicas", leader),
        replicas=links.related(*place, "replicas"),
        reassignment=links.related(*place, "reassignment"),
    )


def _replica(links: Links, partition: PartitionView, broker: int) -> Json:
    return links.resource(
        "KafkaReplica",
        ("topics", partition.topic, "partitions", partition.number, "replicas", broker),
        (("topic", partition.topic), ("partition", partition.number), ("replica", broker)),
        topic_name=partition.topic,
        partition_id=partition.number,
        broker_id=broker,
        is_leader=broker == partition.leader,
        is_in_sync=broker in partition.isr,
        broker=links.related("brokers", broker),
    )


def _reassignment(links: Links, place: TopicPartition, found: Reassignment, name_kind: str) -> Json:
    base = ("topics", place.topic, "partitions", place.partition)
    return links.resource(
        "KafkaReassignment",
        (*base, "reassignment"),
        (("topic", place.topic), ("partition", place.partition), (name_kind, None)),
        topic_name=place.topic,
        partition_id=place.partition,
        adding_replicas=list(found.adding),
        removing_replicas=list(found.removing),
        replicas=links.related(*base, "replicas"),
    )


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "false").lower() == "true"


def _or_default(number: int | None) -> int:
    return BROKER_DEFAULT if number is None else number
