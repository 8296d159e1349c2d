"""Schemas of a registry for columns: writers' schemas by reference, and by subject those that a reader or a sink chose.

It leaves requests, retries and caches to the registry's client, and what schemas mean to the codec.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from headrace.schemas.columns.codec import Codec, PinnedSchema
from headrace.schemas.columns.decoded import Undecodable
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.registry_client import (
    SCHEMA_NOT_FOUND,
    SUBJECT_NOT_FOUND,
    VERSION_NOT_FOUND,
    RegisteredSchema,
    RegistryRefused,
    Schema,
    SchemaRegistryClient,
)
from headrace.schemas.subject_names import in_context
from headrace.schemas.wire_format import SchemaReference

LATEST: Final = None
UNKNOWN: Final = frozenset({SUBJECT_NOT_FOUND, VERSION_NOT_FOUND, SCHEMA_NOT_FOUND, 404})


class KnownSchema(NamedTuple):
    """A schema that the registry has, with its id."""

    schema_id: int
    pinned: PinnedSchema


class PinnedSchemas:
    """Schemas of one language. Every call raises RegistryUnreachable where the registry does not answer."""

    def __init__(self, client: SchemaRegistryClient, codec: Codec, *, context: str = "") -> None:
        self._client = client
        self._codec = codec
        self._context = context
        # Any subject of a context tells the registry which context an id belongs to.
        self._id_subject = in_context(context, "") or None

    def of_writer(self, reference: SchemaReference) -> PinnedSchema:
        """The schema that a record refers to. Raises Undecodable where it cannot be had, or is of another language."""
        try:
            found = self._client.schema(reference, subject=self._id_subject).schema
            self._check_language(found, f"the schema {reference}")
            return self._pin(found)
        except RegistryRefused as error:
            if error.code in UNKNOWN or error.status == 404:
                raise Undecodable(f"the registry has no schema {reference}: {error}") from error
            raise
        except InvalidSchema as error:
            raise Undecodable(f"the schema {reference} cannot be used: {error}") from error

    def of_subject(
        self, subject: str, version: int | None = LATEST, *, message: str = ""
    ) -> KnownSchema:
        """A version of a subject, the newest one by default. Raises RegistryRefused, InvalidSchema."""
        found = (
            self._client.latest(subject)
            if version is None
            else self._client.version(subject, version)
        )
        self._check_language(found.schema, f"version {found.version} of {subject}")
        return _known(found, self._pin(found.schema, message))

    def of_text(self, schema: Schema, *, message: str = "") -> PinnedSchema:
        """A schema that the user gave. Raises RegistryRefused (of a reference), InvalidSchema."""
        return self._pin(schema, message)

    def register(
        self, subject: str, schema: Schema, *, normalize: bool, message: str = ""
    ) -> KnownSchema:
        """The schema, after it was registered. Raises RegistryRefused, InvalidSchema."""
        found = self._client.register(subject, schema, normalize=normalize)
        return _known(found, self._pin(schema, message))

    def look_up(
        self, subject: str, schema: Schema, *, normalize: bool, message: str = ""
    ) -> KnownSchema:
        """The schema, which must have been registered. Raises RegistryRefused, InvalidSchema."""
        found = self._client.look_up(subject, schema, normalize=normalize)
        return _known(found, self._pin(schema, message))

    def of_id(self, schema_id: int, *, message: str = "") -> KnownSchema:
        """The schema of an id that the user gave. Raises RegistryRefused, InvalidSchema."""
        found = self._client.schema(schema_id, subject=self._id_subject)
        self._check_language(found.schema, f"the schema {schema_id}")
        return KnownSchema(schema_id, self._pin(found.schema, message))

    def _pin(self, schema: Schema, message: str = "") -> PinnedSchema:
        dependencies = self._client.dependencies(schema, context=self._context)
        return self._codec.pin(schema, dependencies, message=message)

    def _check_language(self, schema: Schema, what: str) -> None:
        if schema.schema_type != self._codec.schema_type:
            raise InvalidSchema(
                f"{what} is of the type {schema.schema_type}, not {self._codec.schema_type}"
            )


def _known(found: RegisteredSchema, pinned: PinnedSchema) -> KnownSchema:
    assert found.schema_id is not None, "a registry answers with the id of a subject's schema"
    return KnownSchema(found.schema_id, pinned)
