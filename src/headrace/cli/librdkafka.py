"""Clients of librdkafka, quiet: what it would log is told in our words, once each."""

from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from headrace.cli.command_line import Failure, tell

_QUIET = {"log_level": 0}


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
        return Producer({**_QUIET, "error_cb": _Complaints().note, **settings})
    except (KafkaException, ValueError, TypeError) as wrong:
        raise _bad_setting(wrong) from wrong


def make_consumer(settings: Mapping[str, object]) -> Consumer:
    """A consumer. Raises Failure where a setting is wrong."""
    try:
        return Consumer({**_QUIET, "error_cb": _Complaints().note, **settings})
    except (KafkaException, ValueError, TypeError) as wrong:
        raise _bad_setting(wrong) from wrong


def _bad_setting(wrong: Exception) -> Failure:
    error = wrong.args[0] if wrong.args else wrong
    text = error.str() if isinstance(error, KafkaError) else str(error)
    return Failure("the client does not accept its settings", why=text)
