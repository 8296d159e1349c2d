"""Rules for the levels of a broker's loggers. Codes and words are Kafka's."""

from collections.abc import Container, Iterable
from typing import Final

from headrace.settings.alteration import Alteration, AlterOp
from headrace.settings.resource import invalid_config, invalid_request
from headrace.wire.refusal import Refusal

_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_ROOT: Final = "root"


def refuse_loggers(alterations: Iterable[Alteration], known: Container[str]) -> Refusal | None:
    """Why the loggers, of which these are known, may not be changed like that; None if they may."""
    for name, op, value in alterations:
        if op not in (AlterOp.SET, AlterOp.DELETE):
            word = AlterOp(op).name if op in set(AlterOp) else f"Unknown ({op})"
            return invalid_request(
                f"{word} operation is not allowed for the BROKER_LOGGER resource"
            )
        if name not in known:
            return invalid_config(f"Logger {name} does not exist!")
        if op == AlterOp.SET and value not in _LEVELS:
            return invalid_config(
                f"Cannot set the log level of {name} to {value} as it is not a supported log level. "
                f"Valid log levels are {', '.join(_LEVELS)}"
            )
        if op == AlterOp.DELETE and name == _ROOT:
            return invalid_request("Removing the log level of the root logger is not allowed")
    return None
