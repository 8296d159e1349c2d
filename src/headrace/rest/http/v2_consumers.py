"""Consumers of version 2: instances, subscriptions, assignments, positions, commits, records."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from headrace.ids import TopicPartition
from headrace.rest import errors, names
from headrace.rest.consumers.forms import (
    CommitForm,
    CreateForm,
    PartitionForm,
    PartitionsForm,
    SeekForm,
    SubscriptionForm,
)
from headrace.rest.consumers.instances import ConsumerInstances, OpenInstance
from headrace.rest.consumers.read_plan import ReadPlan
from headrace.rest.http.answers import nothing, v2_answer, v2_media_type
from headrace.rest.http.bodies import Bodies
from headrace.rest.http.v3_routes import base_url
from headrace.rest.media_types import RECORD_ANSWERS, V2_BODIES, accepted
from headrace.rest.payloads.formats import Format

T = TypeVar("T")

_NOT_NULL: Final = "The request body must not be null"
_GREATEST_LONG: Final = 2**63 - 1


class ReadDefaults(NamedTuple):
    """How the proxy is set to read records."""

    timeout_ms: int
    max_bytes: int
    min_bytes: int


class V2Consumers:
    """The routes."""

    def __init__(
        self,
        instances: ConsumerInstances,
        bodies: Bodies,
        *,
        defaults: ReadDefaults,
        advertised_url: str | None,
        stopping: asyncio.Event,
    ) -> None:
        self._instances = instances
        self._bodies = bodies
        self._defaults = defaults
        self._advertised_url = advertised_url
        self._stopping = stopping

    def _found(self, request: Request) -> OpenInstance:
        return self._instances.find(request.path_params["group"], request.path_params["instance"])

    async def _form(self, request: Request, kind: type[T]) -> T:
        found = await self._bodies.form(request, kind, V2_BODIES)
        if found is None:
            raise errors.unprocessable(_NOT_NULL)
        return found

    # ---- instances

    async def create(self, request: Request) -> Response:
        """POST /consumers/{group}."""
        v2_media_type(request)
        group = request.path_params["group"]
        names.require_group(group)
        form = await self._bodies.form(request, CreateForm, V2_BODIES)
        name = await self._instances.create(group, (form or CreateForm()).settings())
        base = base_url(request, self._advertised_url)
        path = f"/consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
        return v2_answer(request, {"instance_id": name, "base_uri": base + path})

    async def delete(self, request: Request) -> Response:
        """DELETE …/instances/{instance}."""
        await self._instances.delete(request.path_params["group"], request.path_params["instance"])
        return nothing()

    # ---- subscriptions and assignments

    async def subscribe(self, request: Request) -> Response:
        """POST …/subscription."""
        found = self._found(request)
        form = await self._form(request, SubscriptionForm)
        form.check()
        await found.instance.call(
            lambda consumer: consumer.subscribe(form.topics, form.topic_pattern), ends_reads=True
        )
        return nothing()

    async def unsubscribe(self, request: Request) -> Response:
        """DELETE …/subscription."""
        await self._found(request).instance.call(
            lambda consumer: consumer.unsubscribe(), ends_reads=True
        )
        return nothing()

    async def subscription(self, request: Request) -> Response:
        """GET …/subscription."""
        topics = await self._found(request).instance.call(lambda consumer: consumer.subscription())
        return v2_answer(request, {"topics": topics})

    async def assign(self, request: Request) -> Response:
        """POST …/assignments."""
        found = self._found(request)
        form = await self._form(request, PartitionsForm)
        await found.instance.call(
            lambda consumer: consumer.assign(_places(form.partitions)), ends_reads=True
        )
        return nothing()

    async def assignment(self, request: Request) -> Response:
        """GET …/assignments."""
        partitions = await self._found(request).instance.call(
            lambda consumer: consumer.assignment()
        )
        body = [{"topic": each.topic, "partition": each.partition} for each in partitions]
        return v2_answer(request, {"partitions": body})

    # ---- positions

    async def seek(self, request: Request) -> Response:
        """POST …/positions."""
        found = self._found(request)
        form = await self._form(request, SeekForm)
        await found.instance.call(
            lambda consumer: consumer.seek(form.offsets, form.timestamps), ends_reads=True
        )
        return nothing()

    async def seek_to_beginning(self, request: Request) -> Response:
        """POST …/positions/beginning."""
        return await self._seek_to_edge(request, to_end=False)

    async def seek_to_end(self, request: Request) -> Response:
        """POST …/positions/end."""
        return await self._seek_to_edge(request, to_end=True)

    async def _seek_to_edge(self, request: Request, *, to_end: bool) -> Response:
        found = self._found(request)
        form = await self._form(request, PartitionsForm)
        await found.instance.call(
            lambda consumer: consumer.seek_to_edge(_places(form.partitions), to_end=to_end),
            ends_reads=True,
        )
        return nothing()

    # ---- commits

    async def commit(self, request: Request) -> Response:
        """POST …/offsets."""
        found = self._found(request)
        media_type = v2_media_type(request)
        form = await self._bodies.form(request, CommitForm, V2_BODIES)
        offsets = None if form is None else form.offsets
        is_async = request.query_params.get("async", "false").lower() == "true"
        await found.instance.call(lambda consumer: consumer.commit(offsets, is_async=is_async))
        return Response(b"[]", media_type=media_type)

    async def committed(self, request: Request) -> Response:
        """GET …/offsets, with the partitions in the body."""
        found = self._found(request)
        form = await self._bodies.form(request, PartitionsForm, V2_BODIES)
        if form is None:
            raise errors.partition_not_found()
        offsets = await found.instance.call(
            lambda consumer: consumer.committed(_places(form.partitions))
        )
        body = [
            {
                "topic": each.topic,
                "partition": each.partition,
                "offset": each.offset,
                "metadata": each.metadata or "",
            }
            for each in offsets
        ]
        return v2_answer(request, {"offsets": body})

    # ---- records

    async def read(self, request: Request) -> Response:
        """GET …/records."""
        found = self._found(request)
        media_type, kind = _wanted_format(request)
        if not _is_alike(kind, found.settings.format):
            raise errors.consumer_format_mismatch()
        timeout_ms = found.settings.timeout_ms
        if timeout_ms is None:
            timeout_ms = self._defaults.timeout_ms
        asked_ms = _number(request, "timeout")
        max_bytes = _number(request, "max_bytes")
        min_bytes = found.settings.min_bytes
        plan = ReadPlan(
            min_bytes=self._defaults.min_bytes if min_bytes is None else min_bytes,
            max_bytes=min(self._defaults.max_bytes, max_bytes if max_bytes > 0 else _GREATEST_LONG),
            deadline=time.monotonic()
            + (min(asked_ms, timeout_ms) if asked_ms > 0 else timeout_ms) / 1000,
        )
        gone = asyncio.ensure_future(_gone(request, self._stopping))
        try:
            records = await found.instance.read(plan, gone)
        finally:
            gone.cancel()
        return Response(records, media_type=media_type)


async def _gone(request: Request, stopping: asyncio.Event) -> None:
    """Returns when nobody waits for the answer any more, or the proxy stops."""
    disconnected = asyncio.ensure_future(_disconnected(request))
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((disconnected, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        disconnected.cancel()
        stopped.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _wanted_format(request: Request) -> tuple[str, Format | None]:
    """The media type of the answer and the format that the client expects. Raises RestError."""
    media_type = accepted(request.headers.get("accept", ""), tuple(RECORD_ANSWERS))
    if media_type is None:
        raise errors.not_acceptable()
    return media_type, RECORD_ANSWERS[media_type]


def _is_alike(wanted: Format | None, kind: Format) -> bool:
    return wanted in (None, kind) or (wanted is not None and wanted.has_schema and kind.has_schema)


def _number(request: Request, name: str) -> int:
    """A number in the query; -1 where there is none. What is no number leads nowhere. Raises RestError."""
    text = request.query_params.get(name, "-1")
    try:
        number = int(text)
    except ValueError:
        raise errors.not_found() from None
    if not -_GREATEST_LONG <= number <= _GREATEST_LONG:
        raise errors.not_found()
    return number


def _places(partitions: Iterable[PartitionForm]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in partitions]
