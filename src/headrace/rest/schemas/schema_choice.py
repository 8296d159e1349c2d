"""Finds the schema that a request means, registers it where that is asked for, and makes it ready to be used. Blocking.

Safe to be used by many threads. Owns the cache of schemas that are ready. Leaves the rules of subjects to
`schema_selector`, exchanges to the registry's client, and threads to `schema_threads`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from headrace.rest import errors
from headrace.rest.payloads.avro_json import AvroCodec
from headrace.rest.payloads.formats import OF_SCHEMA_TYPE, SCHEMA_TYPES, Format
from headrace.rest.payloads.json_schema_data import JsonSchemaCodec
from headrace.rest.payloads.json_schema_process import ValidatorProcesses
from headrace.rest.payloads.protobuf_json import ProtobufCodec
from headrace.rest.payloads.protoc_process import compile_schema
from headrace.rest.payloads.schema_codec import SchemaCodec, UnusableSchema
from headrace.rest.schemas.schema_selector import SchemaSelector
from headrace.schemas.formats.schema_format import MAX_SCHEMA_BYTES
from headrace.schemas.registry_client import (
    NamedSchema,
    RegisteredSchema,
    RegistryRefused,
    Schema,
    SchemaRegistryClient,
)
from headrace.schemas.registry_transport import RegistryUnreachable
from headrace.schemas.wire_format import SchemaReference, encode_reference

T = TypeVar("T")

_FORBIDDEN: Final = 40301
_UNPROCESSABLE: Final = 422
_READY: Final = 1000


class ReadySchema(NamedTuple):
    """A schema that can be used to read and write."""

    format: Format
    codec: SchemaCodec


class ChosenSchema(NamedTuple):
    """The schema that a key or value is written with."""

    format: Format
    codec: SchemaCodec
    subject: str
    schema_id: int
    version: int | None
    prefix: bytes  # the reference to it, in front of every payload


class SchemaChoice:
    """Chooses schemas. Every call may ask the registry, and then raises RestError where it refuses or is away."""

    def __init__(self, client: SchemaRegistryClient) -> None:
        self._client = client
        self._validation = ValidatorProcesses()
        self._ready: OrderedDict[Schema, ReadySchema] = OrderedDict()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections to the registry, and end the processes that validate documents."""
        self._client.close()
        self._validation.close()

    def for_writing(self, selector: SchemaSelector) -> ChosenSchema:
        """The schema that a request means, with its id."""
        if selector.schema_id is not None:
            return self._by_id(selector, selector.schema_id)
        if selector.text is not None:
            return self._by_text(selector, selector.text)
        subject = selector.subject_of(None)
        if subject is None:
            assert selector.strategy is not None
            raise errors.bad_request(
                f"Cannot use schema_subject_strategy={selector.strategy.value} without schema_id or schema."
            )
        if selector.version is not None:
            number = selector.version
            what = f"Error when fetching schema by version. subject = {subject}, version = {number}"
            found = _ask(lambda: self._client.version(subject, number), what)
        else:
            what = f"Error when fetching latest schema version. subject = {subject}"
            found = _ask(lambda: self._client.latest(subject), what)
        return self._chosen(found, subject, found.version)

    def for_reading(self, reference: SchemaReference) -> ReadySchema:
        """The schema that a payload refers to. Raises UnusableSchema where the registry does not have it, too."""
        what = f"Error when fetching schema by id. schemaId = {reference}"
        try:
            return self._made_ready(_ask(lambda: self._client.schema(reference), what).schema)
        except errors.RestError as refused:
            if refused.status != _UNPROCESSABLE:
                raise
            raise UnusableSchema(refused.message) from refused

    def _by_id(self, selector: SchemaSelector, schema_id: int) -> ChosenSchema:
        what = f"Error when fetching schema by id. schemaId = {schema_id}"
        found = _ask(lambda: self._client.schema(schema_id), what)
        subject = self._subject(selector, self._made_ready(found.schema).codec)
        what = (
            f"Error when fetching schema version. subject = {subject}, schema = {found.schema.text}"
        )
        version = _ask(lambda: self._client.look_up(subject, found.schema), what).version
        return self._chosen(found, subject, version)

    def _by_text(self, selector: SchemaSelector, text: str) -> ChosenSchema:
        if selector.format is None:
            raise errors.bad_request("Unsupported argument: 'schema' needs a 'type'.")
        if len(text) > MAX_SCHEMA_BYTES:
            raise errors.invalid_schema(f"it is longer than {MAX_SCHEMA_BYTES} bytes")
        schema = Schema(text, SCHEMA_TYPES[selector.format])
        subject = self._subject(selector, self._made_ready(schema).codec)
        what = (
            f"Error when registering schema. format = {selector.format.value}, "
            f"subject = {subject}, schema = {text}"
        )

        def known_or_registered() -> RegisteredSchema:
            try:
                return self._client.look_up(subject, schema)
            except RegistryRefused:
                self._client.register(subject, schema)
            return self._client.look_up(subject, schema)

        found = _ask(known_or_registered, what)
        return self._chosen(found, subject, found.version)

    @staticmethod
    def _subject(selector: SchemaSelector, codec: SchemaCodec) -> str:
        subject = selector.subject_of(codec.record_name)
        if subject is None:
            raise errors.serialization_failed("The schema has no record name to make a subject of.")
        return subject

    def _chosen(self, found: RegisteredSchema, subject: str, version: int | None) -> ChosenSchema:
        ready = self._made_ready(found.schema)
        if found.schema_id is None:
            raise errors.serialization_failed(f"The registry gave no id. subject = {subject}")
        prefix = encode_reference(found.schema_id)
        return ChosenSchema(ready.format, ready.codec, subject, found.schema_id, version, prefix)

    def _made_ready(self, schema: Schema) -> ReadySchema:
        with self._lock:
            ready = self._ready.get(schema)
            if ready is not None:
                self._ready.move_to_end(schema)
                return ready
        what = "Error when fetching the references of a schema."
        references = _ask(lambda: self._client.dependencies(schema), what)
        try:
            ready = self._compiled(schema, references)
        except UnusableSchema as wrong:
            raise errors.invalid_schema(str(wrong)) from wrong
        with self._lock:
            self._ready[schema] = ready
            if len(self._ready) > _READY:
                self._ready.popitem(last=False)
        return ready

    def _compiled(self, schema: Schema, references: tuple[NamedSchema, ...]) -> ReadySchema:
        """Raises UnusableSchema."""
        kind = OF_SCHEMA_TYPE.get(schema.schema_type)
        if kind is None:
            raise UnusableSchema(f"schemas of type {schema.schema_type} are not known here")
        texts = {each.name: each.schema.text for each in references}
        if kind is Format.AVRO:
            return ReadySchema(kind, AvroCodec(schema.text, texts.values()))
        if kind is Format.JSONSCHEMA:
            codec = JsonSchemaCodec(schema.text, texts, validation=self._validation)
            return ReadySchema(kind, codec)
        return ReadySchema(kind, ProtobufCodec(compile_schema(schema.text, texts)))


def _ask(question: Callable[[], T], what: str) -> T:
    try:
        return question()
    except RegistryRefused as refused:
        if refused.code == _FORBIDDEN:
            raise errors.RestError(403, _FORBIDDEN, what) from refused
        raise errors.serialization_failed(f"{what}\n{refused}") from refused
    except RegistryUnreachable as lost:
        raise errors.try_again(f"{what}\n{lost}") from lost
