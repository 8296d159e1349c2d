"""Consumer groups of version 3: groups, consumers, assignments, lags."""

from __future__ import annotations

import re
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin.admin import Admin
from headrace.client.admin.groups import (
    CONSUMER,
    GroupDescription,
    MemberDescription,
    describe_group,
    list_consumer_groups,
)
from headrace.ids import TopicPartition
from headrace.rest import errors
from headrace.rest.admin.group_lag import PartitionLag, find_group, find_lags, summary
from headrace.rest.http.answers import answer
from headrace.rest.http.bodies import whole_number
from headrace.rest.http.v3_routes import V3Routes
from headrace.rest.links import Links
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

Json = Any

_SKIPPED: Final = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_AUTHORIZATION_FAILED})
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


class V3Groups(V3Routes):
    """The routes."""

    # ---- groups

    async def list_groups(self, request: Request) -> Response:
        """GET …/consumer-groups."""

        def find(admin: Admin) -> list[GroupDescription]:
            found = []
            for listing in list_consumer_groups(admin):
                try:
                    found.append(describe_group(admin, listing.group_id))
                except Refused as refused:
                    if refused.error_code not in _SKIPPED:
                        raise
            return found

        groups = await self.ask(request, find)
        links = self.links(request)
        data = [_group(links, each) for each in groups]
        return answer(links.collection("KafkaConsumerGroupList", ("consumer-groups",), data))

    async def get_group(self, request: Request) -> Response:
        """GET …/consumer-groups/{group}."""
        name = request.path_params["group"]
        found = await self.ask(request, lambda admin: find_group(admin, name, "HTTP 404 Not Found"))
        return answer(_group(self.links(request), found))

    # ---- consumers

    async def list_consumers(self, request: Request) -> Response:
        """GET …/consumers."""
        group = await self._group_with_consumers(request)
        links = self.links(request)
        place = ("consumer-groups", group.group_id, "consumers")
        data = [_consumer(links, group.group_id, each) for each in group.members]
        return answer(links.collection("KafkaConsumerList", place, data))

    async def get_consumer(self, request: Request) -> Response:
        """GET …/consumers/{consumer}."""
        group = await self._group_with_consumers(request)
        member = _member(group, request)
        if member is None:
            raise errors.not_found()
        return answer(_consumer(self.links(request), group.group_id, member))

    async def list_assignments(self, request: Request) -> Response:
        """GET …/assignments."""
        group, member = await self._assigned(request)
        links = self.links(request)
        place = ("consumer-groups", group.group_id, "consumers", member.member_id, "assignments")
        data = [
            _assignment(links, group.group_id, member, each) for each in sorted(member.assignment)
        ]
        return answer(links.collection("KafkaConsumerAssignmentList", place, data))

    async def get_assignment(self, request: Request) -> Response:
        """GET …/assignments/{topic}/partitions/{partition}."""
        place = TopicPartition(request.path_params["topic"], whole_number(request, "partition"))
        group, member = await self._assigned(request)
        if place not in member.assignment:
            raise errors.not_found()
        return answer(_assignment(self.links(request), group.group_id, member, place))

    async def _group_with_consumers(self, request: Request) -> GroupDescription:
        name = request.path_params["group"]
        missing = f"Consumer Group {name} does not exist."
        return await self.ask(request, lambda admin: find_group(admin, name, missing))

    async def _assigned(self, request: Request) -> tuple[GroupDescription, MemberDescription]:
        group = await self._group_with_consumers(request)
        member = _member(group, request)
        if member is None:
            raise errors.not_found(f"Consumer {request.path_params['consumer']} does not exist.")
        return group, member

    # ---- lags

    async def get_lag_summary(self, request: Request) -> Response:
        """GET …/lag-summary."""
        name = request.path_params["group"]
        found = summary(await self.ask(request, lambda admin: find_lags(admin, name)))
        if found is None:
            raise errors.not_found()
        links, greatest = self.links(request), found.greatest
        member = greatest.member
        place = greatest.place
        return answer(
            links.resource(
                "KafkaConsumerGroupLagSummary",
                ("consumer-groups", name, "lag-summary"),
                (("consumer-group", name), ("lag-summary", None)),
                consumer_group_id=name,
                max_lag_consumer_id=member.member_id if member else "",
                max_lag_instance_id=member.instance_id if member else None,
                max_lag_client_id=member.client_id if member else "",
                max_lag_topic_name=place.topic,
                max_lag_partition_id=place.partition,
                max_lag=greatest.lag,
                total_lag=found.total,
                max_lag_consumer=links.related(
                    "consumer-groups",
                    name,
                    "consumers",
                    *((member.member_id,) if member else ()),
                ),
                max_lag_partition=links.related(
                    "topics", place.topic, "partitions", place.partition
                ),
            )
        )

    async def list_lags(self, request: Request) -> Response:
        """GET …/lags."""
        name = request.path_params["group"]
        found = await self.ask(request, lambda admin: find_lags(admin, name))
        if not found:
            raise errors.not_found("Consumer lags not found.")
        links = self.links(request)
        data = [_lag(links, name, each) for each in found]
        return answer(
            links.collection("KafkaConsumerLagList", ("consumer-groups", name, "lags"), data)
        )

    async def get_lag(self, request: Request) -> Response:
        """GET …/lags/{topic}/partitions/{partition}."""
        name = request.path_params["group"]
        place = TopicPartition(request.path_params["topic"], whole_number(request, "partition"))
        found = await self.ask(request, lambda admin: find_lags(admin, name))
        wanted = next((each for each in found if each.place == place), None)
        if wanted is None:
            raise errors.not_found()
        return answer(_lag(self.links(request), name, wanted))


def _member(group: GroupDescription, request: Request) -> MemberDescription | None:
    wanted = request.path_params["consumer"]
    return next((each for each in group.members if each.member_id == wanted), None)


def _group(links: Links, group: GroupDescription) -> Json:
    place = ("consumer-groups", group.group_id)
    is_consumer = group.group_type == CONSUMER
    return links.resource(
        "KafkaConsumerGroup",
        place,
        (("consumer-group", group.group_id),),
        consumer_group_id=group.group_id,
        # A group that only keeps offsets has no protocol.
        is_simple=not is_consumer and not group.assignor and not group.members,
        partition_assignor=group.assignor,
        state=_WORD.sub("_", group.state).upper(),
        type=group.group_type.upper(),
        is_mixed_consumer_group=is_consumer
        and any(each.upgraded is not True for each in group.members),
        coordinator=links.related("brokers", group.coordinator.broker_id),
        consumers=links.related(*place, "consumers"),
        lag_summary=links.related(*place, "lag-summary"),
    )


def _consumer(links: Links, group_id: str, member: MemberDescription) -> Json:
    place = ("consumer-groups", group_id, "consumers", member.member_id)
    return links.resource(
        "KafkaConsumer",
        place,
        (("consumer-group", group_id), ("consumer", member.member_id)),
        consumer_group_id=group_id,
        consumer_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        assignments=links.related(*place, "assignments"),
    )


def _assignment(
    links: Links, group_id: str, member: MemberDescription, place: TopicPartition
) -> Json:
    partition = (place.topic, "partitions", place.partition)
    return links.resource(
        "KafkaConsumerAssignment",
        ("consumer-groups", group_id, "consumers", member.member_id, "assignments", *partition),
        (
            ("consumer-group", group_id),
            ("consumer", member.member_id),
            ("assignment", place.topic),
            ("partition", place.partition),
        ),
        consumer_group_id=group_id,
        consumer_id=member.member_id,
        topic_name=place.topic,
        partition_id=place.partition,
        partition=links.related("topics", *partition),
        lag=links.related("consumer-groups", group_id, "lags", *partition),
    )


def _lag(links: Links, group_id: str, found: PartitionLag) -> Json:
    place, member = found.place, found.member
    return links.resource(
        "KafkaConsumerLag",
        ("consumer-groups", group_id, "lags", place.topic, "partitions", place.partition),
        (("consumer-group", group_id), ("lag", place.topic), ("partition", place.partition)),
        consumer_group_id=group_id,
        topic_name=place.topic,
        partition_id=place.partition,
        consumer_id=member.member_id if member else "",
        instance_id=member.instance_id if member else None,
        client_id=member.client_id if member else "",
        current_offset=found.current_offset,
        log_end_offset=found.end_offset,
        lag=found.lag,
    )
