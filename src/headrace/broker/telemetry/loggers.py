"""The broker's loggers, by name, with their levels in Kafka's words: what `kafka-configs --entity-type broker-loggers` shows and sets.

Acts on the standard library's loggers of this process; nothing is stored, a restart begins with `headrace.log.level`.
"""

import logging
from collections.abc import Mapping
from typing import Final

ROOT: Final = "root"
LEVELS: Final[Mapping[str, int]] = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": logging.DEBUG - 5,
    "WARN": logging.WARNING,
}
_WORDS: Final = {number: word for word, number in LEVELS.items()}


def levels() -> dict[str, str]:
    """Every logger with its level in force, packages among them: what has no level of its own follows them."""
    return {name: _word(name) for name in (ROOT, *sorted(logging.getLogger().manager.loggerDict))}


def set_level(name: str, word: str | None) -> None:
    """Give a logger a level; without one it follows the logger above it."""
    logger = logging.getLogger(None if name == ROOT else name)
    logger.setLevel(logging.NOTSET if word is None else LEVELS[word])


def _word(name: str) -> str:
    number = logging.getLogger(None if name == ROOT else name).getEffectiveLevel()
    return _WORDS.get(number, logging.getLevelName(number))
