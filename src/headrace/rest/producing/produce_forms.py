"""Forms of produce requests, versions 2 and 3, and which of their fields exclude each other. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from headrace.rest import errors
from headrace.rest.payloads.formats import Format
from headrace.rest.schemas.schema_selector import SchemaSelector, SubjectStrategy

_NULL: Final = msgspec.Raw(b"null")
_BATCH_ID: Final = re.compile(r"[0-9a-zA-Z\-_]{1,80}")
_MS: Final = 1000
_HIGHEST_MS: Final = 2**63 - 1


class HeaderForm(msgspec.Struct, forbid_unknown_fields=True):
    """A record header; its value is base64 in JSON."""

    name: str
    value: bytes | None = None


class DataForm(msgspec.Struct, forbid_unknown_fields=True):
    """A key or a value with its format or its schema."""

    type: Format | None = None
    subject: str | None = None
    subject_name_strategy: SubjectStrategy | None = None
    schema_id: int | None = None
    schema_version: int | None = None
    schema: str | None = None
    data: msgspec.Raw = _NULL

    def check(self) -> None:
        """Raises RestError where fields exclude each other."""
        if (
            self.type is not None
            and not self.type.has_schema
            and self.subject is None
            and self.subject_name_strategy is None
            and self.schema_id is None
            and self.schema_version is None
            and self.schema is None
        ):
            return  # by far the most common: a plain format and nothing else
        problem = _problem(self)
        if problem is not None:
            raise errors.RestError(
                400, 400, f"Cannot construct instance of `ProduceRequestData`, problem: {problem}"
            )

    @property
    def needs_schema(self) -> bool:
        """Whether the data are written with a schema of the registry."""
        return self.type is None or self.type.has_schema

    def selector(self, topic: str, *, is_key: bool) -> SchemaSelector:
        """Which schema is meant."""
        return SchemaSelector(
            topic=topic,
            is_key=is_key,
            format=self.type,
            subject=self.subject,
            strategy=self.subject_name_strategy,
            schema_id=self.schema_id,
            version=self.schema_version,
            text=self.schema,
        )


_Timestamp = Annotated[datetime, msgspec.Meta(tz=True)] | int | float | None


class RecordForm(msgspec.Struct, forbid_unknown_fields=True):
    """A record of version 3."""

    partition_id: int | None = None
    headers: list[HeaderForm] | None = None
    key: DataForm | None = None
    value: DataForm | None = None
    timestamp: _Timestamp = None


class BatchEntryForm(RecordForm, kw_only=True):
    """A record of `records:batch`, with an id by which its answer is found."""

    id: Any = None


class BatchForm(msgspec.Struct, forbid_unknown_fields=True):
    """A request of `records:batch`."""

    entries: list[BatchEntryForm] | None = None

    def checked(self, maximum: int) -> Sequence[BatchEntryForm]:
        """The entries. Raises RestError where there are none, too many, or two with the same id."""
        entries = self.entries or ()
        for entry in entries:
            if not isinstance(entry.id, str) or not _BATCH_ID.fullmatch(entry.id):
                raise errors.invalid_batch("Batch entry identifier is not a valid string.")
        if len({entry.id for entry in entries}) < len(entries):
            raise errors.invalid_batch("Batch entry IDs are not distinct.")
        if not entries:
            raise errors.invalid_batch("Empty batch.")
        if len(entries) > maximum:
            raise errors.invalid_batch("Too many entries in batch.")
        return entries


class V2RecordForm(msgspec.Struct, forbid_unknown_fields=True):
    """A record of version 2."""

    key: msgspec.Raw = _NULL
    value: msgspec.Raw = _NULL
    partition: int | None = None


class V2ProduceForm(msgspec.Struct, forbid_unknown_fields=True):
    """A produce request of version 2; the schemas count for all of its records."""

    records: list[V2RecordForm] | None = None
    key_schema: str | None = None
    key_schema_id: int | None = None
    value_schema: str | None = None
    value_schema_id: int | None = None

    def selector(self, topic: str, format: Format, *, is_key: bool) -> SchemaSelector | None:
        """Which schema is meant for keys or values; None where none is named."""
        text = self.key_schema if is_key else self.value_schema
        schema_id = self.key_schema_id if is_key else self.value_schema_id
        if text is None and schema_id is None:
            return None
        return SchemaSelector(
            topic=topic,
            is_key=is_key,
            format=None if text is None else format,
            schema_id=schema_id,
            text=text,
        )


def timestamp_ms(timestamp: datetime | float | None) -> int:
    """A record's timestamp for Kafka; 0 means now. Numbers are seconds. Raises RestError."""
    if timestamp is None:
        return 0
    seconds = timestamp.timestamp() if isinstance(timestamp, datetime) else timestamp
    try:
        milliseconds = round(seconds * _MS)
    except (OverflowError, ValueError):
        milliseconds = -1
    if not 0 <= milliseconds <= _HIGHEST_MS:
        raise errors.bad_request(f"timestamp={timestamp} is not a time of a record.")
    # Exactly 1970 is as good as a millisecond later; 0 would mean now.
    return milliseconds or 1


def _problem(form: DataForm) -> str | None:
    if form.subject is not None and form.subject_name_strategy is not None:
        return "Only one of 'subject_name_strategy' or 'subject' can be used."
    named = (form.schema_id, form.schema_version, form.schema)
    if sum(each is not None for each in named) > 1:
        return "Only one of 'schema_id', 'schema_version' or 'schema' can be used."
    if form.type is None:
        return None
    if form.type.has_schema:
        return _problem_with_schema(form)
    for name, value in (
        ("subject_strategy", form.subject_name_strategy),
        ("subject", form.subject),
        ("schema_id", form.schema_id),
        ("schema_version", form.schema_version),
        ("schema", form.schema),
    ):
        if value is not None:
            return f"'type={form.type.value}' cannot be used with '{name}'."
    return None


def _problem_with_schema(form: DataForm) -> str | None:
    if form.schema_id is not None:
        return f"'schema_id={form.schema_id}' cannot be used with 'serializer'."
    if form.schema_version is not None:
        return f"'schema_version={form.schema_version}' cannot be used with 'serializer'."
    if form.schema is None:
        return "'schema_version=latest' cannot be used with 'serializer'."
    return None
