"""Encoders of the key and the value column of a sink: bytes and text as they are, other types with a registry's schema.

The schema is the one that the user gave, or a registered version, or derived from the column's type. It is registered, or looked
up, once for each topic in each process; the registry knows it from then on, and so does its client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.errors import HeadraceError
from headrace.pipelines.columns.schemas import pinned_schemas
from headrace.pipelines.options.known_options import OptionError
from headrace.schemas.columns.codecs import codec_of
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.registry_client import RegistryRefused, Schema
from headrace.schemas.subject_names import NoSubject, in_context, subject_name
from headrace.schemas.wire_format import encode_reference

if TYPE_CHECKING:
    from headrace.pipelines.options.schema_options import (
        FormatOptions,
        Registration,
        RegistryOptions,
    )
    from headrace.schemas.columns.codec import ValueEncoder
    from headrace.schemas.columns.pinned_schemas import KnownSchema


class EncodeFailed(HeadraceError):
    """A row cannot be written with its schema."""


class ColumnEncoder:
    """Encodes one column, with a schema for each topic."""

    def __init__(
        self,
        wanted: FormatOptions,
        column: pa.DataType,
        registry: RegistryOptions,
        registration: Registration,
    ) -> None:
        self._wanted = wanted
        self._column = column
        self._context = registry.context
        self._registration = registration
        self._codec = codec_of(wanted.format)
        self._schemas = pinned_schemas(wanted, registry)
        self._encoders: dict[str, tuple[bytes, ValueEncoder]] = {}

    def prepare(self, topic: str) -> tuple[bytes, ValueEncoder]:
        """Find the schema for a topic. Raises OptionError where there is none or it does not fit the column."""
        known = self._encoders.get(topic)
        if known is None:
            name = self._wanted.column
            try:
                schema = self._known_schema(topic)
                encoder = self._codec.encoder(schema.pinned, self._column)
            except (InvalidSchema, NoSubject, RegistryRefused) as error:
                raise OptionError(f"the schema of the {name}s of {topic}: {error}") from error
            known = encode_reference(schema.schema_id), encoder
            self._encoders[topic] = known
        return known

    def encode(self, topic: str, column: pa.Array) -> pa.Array:
        """The values as records of a topic hold them. Raises EncodeFailed, OptionError."""
        from headrace.schemas.columns.byte_columns import joined
        from headrace.schemas.columns.decoded import Unencodable

        reference, encoder = self.prepare(topic)
        try:
            payload = encoder.encode(column)
        except Unencodable as error:
            raise EncodeFailed(f"a {self._wanted.column} for {topic}: {error}") from error
        return joined([pa.scalar(reference, pa.binary()), payload])

    def _known_schema(self, topic: str) -> KnownSchema:
        wanted, message = self._wanted, self._wanted.message
        if wanted.schema_id is not None:
            return self._schemas.of_id(wanted.schema_id, message=message)
        if wanted.version is not None or (self._registration.use_latest and not wanted.schema):
            subject = self._subject(topic, "")
            return self._schemas.of_subject(subject, wanted.version, message=message)
        schema = self._schema(topic)
        record_name = self._codec.record_name(self._schemas.of_text(schema, message=message))
        subject = self._subject(topic, record_name)
        if self._registration.use_latest:
            return self._schemas.of_subject(subject, message=message)
        normalize = self._registration.normalize
        if self._registration.auto_register:
            return self._schemas.register(subject, schema, normalize=normalize, message=message)
        return self._schemas.look_up(subject, schema, normalize=normalize, message=message)

    def _schema(self, topic: str) -> Schema:
        wanted = self._wanted
        if wanted.schema:
            return Schema(wanted.schema, self._codec.schema_type, wanted.references)
        return self._codec.derived(self._column, topic)

    def _subject(self, topic: str, record_name: str) -> str:
        wanted = self._wanted
        if wanted.subject:
            return in_context(self._context, wanted.subject)
        return subject_name(
            wanted.strategy,
            topic,
            is_key=wanted.is_key,
            record_name=record_name,
            context=self._context,
        )
