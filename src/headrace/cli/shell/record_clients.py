"""Producers and consumers of the tools: what librdkafka would log is told in our words, once each."""

from collections.abc import Mapping

from headrace.cli.shell.command_line import Failure, tell
from headrace.client import librdkafka
from headrace.client.librdkafka import Consumer, KafkaError, Producer, SettingRefused


class _Complaints:
    """Tells each kind of trouble once."""

    def __init__(self) -> None:
        self._told: set[int] = set()

    def note(self, error: KafkaError) -> None:
        if error.code() not in self._told:
            self._told.add(error.code())
            tell(f"WARN {error.str()}")


def make_producer(settings: Mapping[str, object]) -> Producer:
    """A producer. Raises Failure where a setting is wrong."""
    try:
        return librdkafka.make_producer(settings, _Complaints().note)
    except SettingRefused as wrong:
        raise _failure(wrong) from wrong


def make_consumer(settings: Mapping[str, object]) -> Consumer:
    """A consumer. Raises Failure where a setting is wrong."""
    try:
        return librdkafka.make_consumer(settings, _Complaints().note)
    except SettingRefused as wrong:
        raise _failure(wrong) from wrong


def _failure(wrong: SettingRefused) -> Failure:
    return Failure("the client does not accept its settings", why=str(wrong))
