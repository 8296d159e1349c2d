"""Finds out whether the keys or values of a topic have schemas of a registry, and which subject they are read with.

A topic tells by its name (the subject `orders-value`), and its records tell by the schemas that they refer to.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from headrace.pipelines.options.schema_options import RegistryOptions
from headrace.schemas.registry_client import (
    AVRO,
    JSON_SCHEMA,
    PROTOBUF,
    RegistryRefused,
    SchemaRegistryClient,
)
from headrace.schemas.subject_names import SubjectNameStrategy, subject_name
from headrace.schemas.wire_format import NotFramed, SchemaReference, parse, schema_header

DEFAULT_URL: Final = "http://localhost:8081"
_FORMATS: Final = {AVRO: "avro", PROTOBUF: "protobuf", JSON_SCHEMA: "jsonschema"}
_CONNECT_S: Final = 1.0
Headers = Sequence[tuple[str, bytes | None]]


class Sample(NamedTuple):
    """A key or a value as it is stored, and the headers of its record."""

    data: bytes
    headers: Headers = ()


def registry_at(url: str) -> RegistryOptions:
    """A registry that is asked a few questions while somebody waits."""
    return RegistryOptions(
        urls=tuple(each.strip() for each in url.split(",")),
        credentials=None,
        ca_file=None,
        request_timeout_s=5.0,
        total_timeout_s=10.0,
        context="",
    )


def is_listening(url: str) -> bool:
    """Whether anybody takes connections there."""
    parts = urlsplit(url)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 80), _CONNECT_S):
            return True
    except OSError:
        return False


def discovered(
    client: SchemaRegistryClient, topic: str, column: str, samples: Sequence[Sample]
) -> dict[str, str]:
    """The options to read `key` or `value` of a topic with; empty where they have no schemas. Raises RegistryUnreachable."""
    references = [_reference(each, is_key=column == "key") for each in samples]
    known = [each for each in references if each is not None]
    if samples and 2 * len(known) <= len(samples):
        return {}  # a few bytes that look like a reference are none
    subject = subject_name(SubjectNameStrategy.TOPIC, topic, is_key=column == "key", record_name="")
    try:
        found = client.latest(subject)
    except RegistryRefused:
        return _by_reference(client, column, known)
    return _options(column, found.schema.schema_type, subject)


def _by_reference(
    client: SchemaRegistryClient, column: str, references: Sequence[SchemaReference]
) -> dict[str, str]:
    for reference in dict.fromkeys(references):
        try:
            schema = client.schema(reference)
            subjects = client.subjects(reference) if isinstance(reference, int) else ()
        except RegistryRefused:
            continue
        if subjects:
            return _options(column, schema.schema.schema_type, subjects[0])
        if schema.schema_id is not None:
            return {
                f"{column}Format": _FORMATS[schema.schema.schema_type],
                f"{column}SchemaId": str(schema.schema_id),
            }
    return {}


def _options(column: str, schema_type: str, subject: str) -> dict[str, str]:
    return {f"{column}Format": _FORMATS[schema_type], f"{column}Subject": subject}


def _reference(sample: Sample, *, is_key: bool) -> SchemaReference | None:
    try:
        return parse(sample.data, schema_header(sample.headers, is_key=is_key)).schema
    except NotFramed:
        return None
