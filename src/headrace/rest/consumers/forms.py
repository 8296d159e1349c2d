"""Forms of consumer requests, and what a new instance is set to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, NamedTuple

import msgspec

from headrace.rest import errors, names
from headrace.rest.media_types import RECORD_FORMATS
from headrace.rest.payloads.formats import Format
from headrace.rest.settings import MAX_FETCH_MIN_BYTES

_RESETS: Final = {"earliest": "earliest", "latest": "latest", "none": "error"}
_NAME_LIMIT: Final = 1000
_PATTERN_LIMIT: Final = 1000
_GREATEST_INT: Final = 2**31 - 1

Offset = Annotated[int, msgspec.Meta(ge=0, lt=2**63 - 1)]
Partition = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]


class InstanceSettings(NamedTuple):
    """What a client asks of a new instance; None means as the proxy is set."""

    name: str | None
    format: Format
    consumer: Mapping[str, str]  # librdkafka's settings
    min_bytes: int | None
    timeout_ms: int | None


class CreateForm(
    msgspec.Struct,
    forbid_unknown_fields=True,
    rename={
        "auto_offset_reset": "auto.offset.reset",
        "auto_commit_enable": "auto.commit.enable",
        "fetch_min_bytes": "fetch.min.bytes",
        "request_timeout_ms": "consumer.request.timeout.ms",
        "response_min_bytes": "responseMinBytes",
        "request_wait_ms": "requestWaitMs",
    },
):
    """A new instance. Two settings have an older name."""

    id: str | None = None
    name: str | None = None
    format: str | None = None
    auto_offset_reset: str | None = None
    auto_commit_enable: str | bool | None = None
    fetch_min_bytes: int | str | None = None
    response_min_bytes: int | str | None = None
    request_timeout_ms: int | str | None = None
    request_wait_ms: int | str | None = None

    def settings(self) -> InstanceSettings:
        """Raises RestError where a value is none."""
        name = self.id if self.id is not None else self.name
        if name is not None and not 0 < len(name) <= _NAME_LIMIT:
            raise errors.invalid_consumer_config(
                f"a name has 1 to {_NAME_LIMIT} characters, this one {len(name)}"
            )
        if name is not None:
            names.require_instance(name)
        return InstanceSettings(
            name=name,
            format=self._format(),
            consumer=self._consumer(),
            min_bytes=self._min_bytes(),
            timeout_ms=self._timeout_ms(),
        )

    def _format(self) -> Format:
        if self.format is None:
            return Format.BINARY
        found = RECORD_FORMATS.get(self.format.lower())
        if found is None:
            raise errors.unprocessable("Invalid format type.")
        return found

    def _consumer(self) -> Mapping[str, str]:
        settings: dict[str, str] = {}
        if self.auto_offset_reset is not None:
            reset = _RESETS.get(self.auto_offset_reset.lower())
            if reset is None:
                raise errors.invalid_consumer_config(
                    f"Invalid value {self.auto_offset_reset} for configuration auto.offset.reset: "
                    "expected earliest, latest or none"
                )
            settings["auto.offset.reset"] = reset
        if self.auto_commit_enable is not None:
            text = str(self.auto_commit_enable).lower()
            if text not in ("true", "false"):
                raise errors.invalid_consumer_config(
                    f"Invalid value {self.auto_commit_enable} for configuration enable.auto.commit: "
                    "Expected value to be either true or false"
                )
            settings["enable.auto.commit"] = text
        return settings

    def _min_bytes(self) -> int | None:
        given = (
            self.fetch_min_bytes if self.fetch_min_bytes is not None else self.response_min_bytes
        )
        if given is None:
            return None
        number = _number("fetch.min.bytes", given)
        if not -1 <= number <= MAX_FETCH_MIN_BYTES:
            bound = "at least -1" if number < -1 else f"no more than {MAX_FETCH_MIN_BYTES}"
            raise errors.consumer_config_out_of_bounds(
                f"Invalid value {number} for configuration fetch.min.bytes: Value must be {bound}"
            )
        return number

    def _timeout_ms(self) -> int | None:
        given = (
            self.request_timeout_ms if self.request_timeout_ms is not None else self.request_wait_ms
        )
        if given is None:
            return None
        number = _number("consumer.request.timeout.ms", given)
        if not 0 <= number <= _GREATEST_INT:
            raise errors.consumer_config_out_of_bounds(
                f"Invalid value {number} for configuration consumer.request.timeout.ms: "
                "Value must be at least 0"
            )
        return number


def _number(name: str, given: int | str) -> int:
    try:
        return int(given)
    except ValueError:
        raise errors.invalid_consumer_config(
            f"Invalid value {given} for configuration {name}: Not a number of type INT"
        ) from None


class SubscriptionForm(msgspec.Struct, forbid_unknown_fields=True):
    """Topics by name, or by a regular expression."""

    topics: list[str] | None = None
    topic_pattern: str | None = None

    def check(self) -> None:
        """Raises RestError where neither, a broken pattern or what is no topic's name is given."""
        if self.topics is None and self.topic_pattern is None:
            raise errors.unprocessable("Either topics or topic_pattern is required.")
        if self.topics is not None and self.topic_pattern is not None:
            raise errors.illegal_state(
                "Subscription to topics, partitions and pattern are mutually exclusive"
            )
        names.require_topics(self.topics or ())
        if self.topic_pattern is not None:
            if names.has_control_character(self.topic_pattern):
                raise errors.unprocessable("topic_pattern has a control character.")
            if len(self.topic_pattern) > _PATTERN_LIMIT:
                raise errors.unprocessable(f"topic_pattern is longer than {_PATTERN_LIMIT}.")
            try:
                re.compile(self.topic_pattern)
            except re.error as wrong:
                raise errors.unprocessable(f"topic_pattern: {wrong}") from None


class _OfTopic(msgspec.Struct, forbid_unknown_fields=True):
    """The base of what concerns a partition of a topic."""

    topic: str

    def __post_init__(self) -> None:
        """Raises RestError where there can be no such topic."""
        names.require_topics((self.topic,))


class PartitionForm(_OfTopic):
    """A partition."""

    partition: Partition


class PartitionsForm(msgspec.Struct, forbid_unknown_fields=True):
    """Partitions to assign, or to go to the beginning or end of, or to be told the committed offsets of."""

    partitions: list[PartitionForm] = []


class OffsetForm(_OfTopic):
    """An offset of a partition, to commit or to go to."""

    partition: Partition
    offset: Offset
    metadata: str | None = None

    def __post_init__(self) -> None:
        """Raises RestError where there can be no such topic, or where metadata would be cut."""
        super().__post_init__()
        if self.metadata is not None and "\0" in self.metadata:
            raise errors.unprocessable("metadata has a NUL.")


class CommitForm(msgspec.Struct, forbid_unknown_fields=True):
    """Offsets of the last records that were processed. None: of all that were read."""

    offsets: list[OffsetForm] | None = None


class TimestampForm(_OfTopic):
    """A time in a partition."""

    partition: Partition
    timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | int | float
    metadata: str | None = None


class SeekForm(msgspec.Struct, forbid_unknown_fields=True):
    """Where to go on reading."""

    offsets: list[OffsetForm] = []
    timestamps: list[TimestampForm] = []
