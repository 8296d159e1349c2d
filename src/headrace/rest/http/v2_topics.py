"""Topics, partitions and brokers of version 2, and producing with it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headrace.client.admin.admin import Admin
from headrace.client.admin.configs import ResourceType, describe_configs
from headrace.ids import TopicPartition
from headrace.rest import errors
from headrace.rest.admin.admin_pool import AdminPool
from headrace.rest.admin.topic_view import PartitionView, TopicView, all_topics, edges, one_topic
from headrace.rest.http.answers import answer, v2_answer, v2_media_type
from headrace.rest.http.bodies import Bodies, whole_number
from headrace.rest.media_types import RECORD_TYPES, essence
from headrace.rest.payloads import plain
from headrace.rest.payloads.formats import Format
from headrace.rest.producing.produce_forms import V2ProduceForm, V2RecordForm
from headrace.rest.producing.producer import ANY_PARTITION, NewRecord, Produced
from headrace.rest.producing.record_writer import RecordWriter, written_with
from headrace.rest.schemas.schema_choice import ChosenSchema
from headrace.wire.refusal import Refused

Json = Any


class V2Topics:
    """The routes."""

    def __init__(self, admins: AdminPool, bodies: Bodies, writer: RecordWriter) -> None:
        self._admins = admins
        self._bodies = bodies
        self._writer = writer

    # ---- reading

    async def list_topics(self, request: Request) -> Response:
        """GET /topics."""
        v2_media_type(request)
        found = await self._admins.run(all_topics)
        return v2_answer(request, [each.name for each in found])

    async def get_topic(self, request: Request) -> Response:
        """GET /topics/{topic}."""
        name = request.path_params["topic"]

        def find(admin: Admin) -> tuple[TopicView, dict[str, str | None]]:
            topic = one_topic(admin, name)
            configs = describe_configs(admin, ResourceType.TOPIC, [name])[name]
            if not isinstance(configs, list):
                raise Refused.of(configs)
            return topic, {each.name: each.value for each in configs}

        topic, configs = await self._admins.run(find)
        return v2_answer(
            request,
            {
                "name": topic.name,
                "configs": configs,
                "partitions": [_partition(each) for each in topic.partitions],
            },
        )

    async def list_partitions(self, request: Request) -> Response:
        """GET /topics/{topic}/partitions."""
        name = request.path_params["topic"]
        topic = await self._admins.run(lambda admin: one_topic(admin, name))
        return v2_answer(request, [_partition(each) for each in topic.partitions])

    async def get_partition(self, request: Request) -> Response:
        """GET /topics/{topic}/partitions/{partition}."""
        name, number = request.path_params["topic"], whole_number(request, "partition")
        topic = await self._admins.run(lambda admin: one_topic(admin, name))
        found = topic.partition(number)
        if found is None:
            raise errors.partition_not_found()
        return v2_answer(request, _partition(found))

    async def get_offsets(self, request: Request) -> Response:
        """GET /topics/{topic}/partitions/{partition}/offsets."""
        name, number = request.path_params["topic"], whole_number(request, "partition")

        def find(admin: Admin) -> tuple[int, int]:
            place = TopicPartition(name, number)
            if one_topic(admin, name).partition(number) is None:
                raise errors.partition_not_found()
            return edges(admin, [place])[place]

        first, last = await self._admins.run(find)
        return v2_answer(request, {"beginning_offset": first, "end_offset": last})

    async def list_brokers(self, request: Request) -> Response:
        """GET /brokers."""

        def find(admin: Admin) -> list[int]:
            admin.metadata([])
            return sorted(admin.cluster().nodes)

        return v2_answer(request, {"brokers": await self._admins.run(find)})

    # ---- producing

    async def produce(self, request: Request) -> Response:
        """POST /topics/{topic}, POST /topics/{topic}/partitions/{partition}."""
        media_type = v2_media_type(request)
        topic = request.path_params["topic"]
        partition = (
            whole_number(request, "partition") if "partition" in request.path_params else None
        )
        form = await self._bodies.form(request, V2ProduceForm, RECORD_TYPES)
        if form is None or not form.records:
            raise errors.unprocessable("records may not be empty")
        kind = RECORD_TYPES[essence(request.headers["content-type"])]
        key_schema = await self._schema(form, topic, kind, is_key=True)
        value_schema = await self._schema(form, topic, kind, is_key=False)
        await self._require_partitions(topic, partition, form.records)
        forms = form.records

        def encoded() -> list[NewRecord]:
            return [
                NewRecord(
                    topic,
                    _written(kind, bytes(each.key), key_schema, is_key=True),
                    _written(kind, bytes(each.value), value_schema, is_key=False),
                    _partition_of(each, partition),
                )
                for each in forms
            ]

        if any(each and each.codec.is_blocking for each in (key_schema, value_schema)):
            records = await self._writer.schemas.run_encoding(encoded)
        else:
            records = encoded()
        offsets = await asyncio.gather(*map(self._send, records))
        body = {
            "offsets": offsets,
            "key_schema_id": None if key_schema is None else key_schema.schema_id,
            "value_schema_id": None if value_schema is None else value_schema.schema_id,
        }
        return answer(body, status=_status(offsets), media_type=media_type)

    async def _schema(
        self, form: V2ProduceForm, topic: str, kind: Format, *, is_key: bool
    ) -> ChosenSchema | None:
        selector = form.selector(topic, kind, is_key=is_key) if kind.has_schema else None
        if selector is None:
            return None
        if selector.schema_id is not None and selector.text is not None:
            raise errors.bad_request("Unsupported argument: : both a schema and a schema id.")
        return await self._writer.schemas.find(selector)

    async def _require_partitions(
        self, topic: str, partition: int | None, records: Sequence[V2RecordForm]
    ) -> None:
        try:
            await self._writer.require_partition(topic, partition)
            for number in {each.partition for each in records} - {None}:
                await self._writer.require_partition(topic, number)
        except errors.RestError as refused:
            if refused.code == errors.unknown_topic_or_partition().code:
                raise errors.topic_not_found() from refused
            raise

    async def _send(self, record: NewRecord) -> Json:
        done: asyncio.Future[Produced | errors.RestError] = (
            asyncio.get_running_loop().create_future()
        )
        try:
            self._writer.producer.send(record, done.set_result)
            outcome = await done
        except errors.RestError as refused:
            outcome = refused
        if isinstance(outcome, errors.RestError):
            code = outcome.code if outcome.status in (401, 403) or outcome.status >= 500 else 50002
            return {"partition": None, "offset": None, "error_code": code, "error": outcome.message}
        return {
            "partition": outcome.partition,
            "offset": outcome.offset,
            "error_code": None,
            "error": None,
        }


def _partition(partition: PartitionView) -> Json:
    return {
        "partition": partition.number,
        "leader": -1 if partition.leader is None else partition.leader,
        "replicas": [
            {
                "broker": each,
                "leader": each == partition.leader,
                "in_sync": each in partition.isr,
            }
            for each in partition.replicas
        ],
    }


def _partition_of(record: V2RecordForm, partition: int | None) -> int:
    if record.partition is not None:
        return record.partition
    return ANY_PARTITION if partition is None else partition


def _written(
    kind: Format, data: bytes, schema: ChosenSchema | None, *, is_key: bool
) -> bytes | None:
    """A key or value as bytes. Raises RestError."""
    if not kind.has_schema:
        return plain.encode(kind, data)
    if schema is None:
        if data == b"null":
            return None
        raise errors.schema_missing(is_key=is_key)
    return written_with(schema, data).data


def _status(offsets: Sequence[Json]) -> int:
    """200 even where records were not written, unless Kafka does not know or allow the proxy."""
    for each in offsets:
        if each["error_code"] in (40101, 40301):
            return int(each["error_code"]) // 100
    return 200
