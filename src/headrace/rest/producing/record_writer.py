"""Makes Kafka records of the records in requests and hands them to the producer.

What is known already is done without waiting: `prepared_now` gives None where the registry or a broker must be asked
first, and `prepare` asks. Leaves bytes to `payloads`, schemas to `schema_threads`, delivery to `producer`.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.rest import errors
from headrace.rest.payloads import plain
from headrace.rest.payloads.formats import Format
from headrace.rest.payloads.schema_codec import NotOfSchema
from headrace.rest.producing.produce_forms import DataForm, RecordForm, timestamp_ms
from headrace.rest.producing.producer import ANY_PARTITION, NewRecord, OnDone, RecordProducer
from headrace.rest.schemas.schema_choice import ChosenSchema
from headrace.rest.schemas.schema_threads import SchemaThreads
from headrace.rest.topic_directory import TopicDirectory


class Written(NamedTuple):
    """A key or value as bytes, and how it was written. Both are None where the request does not have it."""

    data: bytes | None = None
    format: Format | None = None
    schema: ChosenSchema | None = None


_ABSENT = Written()


class PreparedRecord(NamedTuple):
    """A record that can be sent."""

    record: NewRecord
    key: Written
    value: Written


class RecordWriter:
    """Prepares and sends records."""

    def __init__(
        self, producer: RecordProducer, schemas: SchemaThreads, topics: TopicDirectory
    ) -> None:
        self.producer = producer
        self.schemas = schemas
        self.topics = topics

    def send(self, prepared: PreparedRecord, on_done: OnDone) -> None:
        """Send a record; `on_done` is told later. Raises RestError where it is refused now."""
        self.producer.send(prepared.record, on_done)

    def prepared_now(self, topic: str, form: RecordForm) -> PreparedRecord | None:
        """The record, or None where somebody must be asked first. Raises RestError."""
        partitions = self.topics.known(topic)
        if partitions is None:
            return None
        if form.partition_id is not None and not 0 <= form.partition_id < partitions:
            return None
        schemas: list[ChosenSchema | None] = []
        for data, is_key in ((form.key, True), (form.value, False)):
            schema = None
            if data is not None and data.needs_schema:
                schema = self.schemas.known(data.selector(topic, is_key=is_key))
                if schema is None or schema.codec.is_blocking:
                    return None
            schemas.append(schema)
        return _prepared(topic, form, *schemas)

    async def prepare(self, topic: str, form: RecordForm) -> PreparedRecord:
        """The record. Raises RestError."""
        if form.partition_id is not None and form.partition_id < 0:
            raise errors.partition_not_found()
        schemas: list[ChosenSchema | None] = []
        for data, is_key in ((form.key, True), (form.value, False)):
            schema = None
            if data is not None:
                data.check()
                if data.needs_schema:
                    schema = await self.schemas.find(data.selector(topic, is_key=is_key))
            schemas.append(schema)
        await self.require_partition(topic, form.partition_id)
        if any(each is not None and each.codec.is_blocking for each in schemas):
            return await self.schemas.run_encoding(lambda: _prepared(topic, form, *schemas))
        return _prepared(topic, form, *schemas)

    async def require_partition(self, topic: str, partition: int | None) -> None:
        """Raises RestError where there is no such topic or partition."""
        partitions = self.topics.known(topic)
        if partitions is None or (partition is not None and partition >= partitions):
            partitions = await self.topics.find(topic)
        if partition is not None and not 0 <= partition < partitions:
            raise errors.partition_not_found()


def _prepared(
    topic: str, form: RecordForm, key_schema: ChosenSchema | None, value_schema: ChosenSchema | None
) -> PreparedRecord:
    key = _written(form.key, key_schema)
    value = _written(form.value, value_schema)
    headers = [(each.name, each.value) for each in form.headers] if form.headers else None
    record = NewRecord(
        topic,
        key.data,
        value.data,
        ANY_PARTITION if form.partition_id is None else form.partition_id,
        headers,
        timestamp_ms(form.timestamp),
    )
    return PreparedRecord(record, key, value)


def _written(data: DataForm | None, schema: ChosenSchema | None) -> Written:
    if data is None:
        return _ABSENT
    data.check()
    if schema is not None:
        return written_with(schema, bytes(data.data))
    assert data.type is not None
    return Written(plain.encode(data.type, bytes(data.data)), data.type)


def written_with(schema: ChosenSchema, data: bytes) -> Written:
    """A key or value that is written with a schema. Raises RestError."""
    try:
        payload = schema.codec.encode(data)
    except NotOfSchema as wrong:
        raise errors.bad_request(str(wrong)) from wrong
    return Written(schema.prefix + payload, schema.format, schema)
