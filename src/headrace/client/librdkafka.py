"""Producers and consumers of librdkafka, for programs that write and read records: tools, the demo, HTTP services.

The only module that imports `confluent_kafka`: its clients, the names that go with them, and the few error codes that a program
has to know. Clients made here log nothing by themselves; trouble comes through `on_error`.
"""

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from headrace.errors import HeadraceError

__all__ = [
    "OFFSET_BEGINNING",
    "OFFSET_END",
    "OFFSET_INVALID",
    "PARTITION_EOF",
    "RECORD_TOO_LARGE",
    "TIMESTAMP_NOT_AVAILABLE",
    "UNKNOWN_PARTITION",
    "Consumer",
    "KafkaError",
    "KafkaException",
    "Message",
    "Producer",
    "SettingRefused",
    "TopicPartition",
    "make_consumer",
    "make_producer",
]

PARTITION_EOF: Final = KafkaError._PARTITION_EOF
RECORD_TOO_LARGE: Final = (
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG_SIZE,
)  # broker's, client's
UNKNOWN_PARTITION: Final = KafkaError._UNKNOWN_PARTITION

_QUIET: Final = {"log_level": 0}
OnError = Callable[[KafkaError], None]


class SettingRefused(HeadraceError):
    """librdkafka does not take a setting; the text names it."""


def make_producer(settings: Mapping[str, object], on_error: OnError | None = None) -> Producer:
    """A producer. `on_error` hears of brokers that cannot be reached and the like. Raises SettingRefused."""
    try:
        return Producer(_complete(settings, on_error))
    except (KafkaException, ValueError, TypeError) as wrong:
        raise _refused(wrong) from wrong


def make_consumer(settings: Mapping[str, object], on_error: OnError | None = None) -> Consumer:
    """A consumer. `on_error` hears of brokers that cannot be reached and the like. Raises SettingRefused."""
    try:
        return Consumer(_complete(settings, on_error))
    except (KafkaException, ValueError, TypeError) as wrong:
        raise _refused(wrong) from wrong


def _complete(settings: Mapping[str, object], on_error: OnError | None) -> dict[str, object]:
    return {**_QUIET, **({} if on_error is None else {"error_cb": on_error}), **settings}


def _refused(wrong: Exception) -> SettingRefused:
    error = wrong.args[0] if wrong.args else wrong
    return SettingRefused(error.str() if isinstance(error, KafkaError) else str(error))
