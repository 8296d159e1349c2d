"""Answers to single records of version 3, as JSON. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from headrace.rest.errors import RestError
from headrace.rest.producing.producer import Produced
from headrace.rest.producing.record_writer import PreparedRecord, Written

_OK: Final = 200
_UNPROCESSABLE: Final = 422
_encode = msgspec.json.Encoder().encode


class DataAnswer(msgspec.Struct, omit_defaults=True):
    """How a key or value was written."""

    type: str
    size: int
    subject: str | None = None
    schema_id: int | None = None
    schema_version: int | None = None


class RecordAnswer(msgspec.Struct, omit_defaults=True):
    """What became of a record: where it is, or why not. `id` names the entry of a batch."""

    error_code: int | None = None
    id: str | None = None
    message: str | None = None
    cluster_id: str | None = None
    topic_name: str | None = None
    partition_id: int | None = None
    offset: int | None = None
    timestamp: str | None = None
    key: DataAnswer | None = None
    value: DataAnswer | None = None


def success(
    cluster_id: str, prepared: PreparedRecord, produced: Produced, *, entry_id: str | None = None
) -> RecordAnswer:
    """The answer to a record that was written; entries of a batch have an id instead of an error code."""
    return RecordAnswer(
        error_code=_OK if entry_id is None else None,
        id=entry_id,
        cluster_id=cluster_id,
        topic_name=prepared.record.topic,
        partition_id=produced.partition,
        offset=produced.offset,
        timestamp=_instant(produced.timestamp_ms),
        key=_data(prepared.key),
        value=_data(prepared.value),
    )


def failure(error: RestError, *, entry_id: str | None = None) -> RecordAnswer:
    """The answer to a record that was not written. What cannot be processed has the status as its code, as Confluent's."""
    code, message = error.code, error.message
    if error.status == _UNPROCESSABLE and code != _UNPROCESSABLE:
        code, message = _UNPROCESSABLE, f"Error: {code} : {message}"
    return RecordAnswer(error_code=code, id=entry_id, message=message.partition("\n")[0].strip())


def line(answer: RecordAnswer) -> bytes:
    """An answer in a stream of answers."""
    return _encode(answer) + b"\r\n"


def _data(written: Written) -> DataAnswer | None:
    if written.format is None:
        return None
    schema = written.schema
    size = len(written.data or b"")
    if schema is None:
        return DataAnswer(written.format.value, size)
    return DataAnswer(written.format.value, size, schema.subject, schema.schema_id, schema.version)


def _instant(milliseconds: int) -> str | None:
    """A time as Java writes it: milliseconds only where there are some."""
    if milliseconds < 0:
        return None
    seconds, rest = divmod(milliseconds, 1000)
    text = _to_the_second(seconds)
    if text is None:
        return None
    return f"{text}.{rest:03}Z" if rest else f"{text}Z"


@lru_cache(maxsize=16)
def _to_the_second(seconds: int) -> str | None:
    """The costly part, which records of the same second share."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return None  # beyond the year 9999
