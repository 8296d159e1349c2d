"""Logs the progress while thousands of logs are opened at the start of a broker."""

import logging
from collections.abc import Callable
from typing import Final

_logger = logging.getLogger(__name__)

_INTERVAL_S: Final = 3.0


class RecoveryProgress:
    """Called for each log that was opened. Logs nothing if all are opened quickly."""

    def __init__(self, clock_s: Callable[[], float]) -> None:
        self._clock_s = clock_s
        self._began_s = self._told_s = clock_s()

    def __call__(self, path: str, done: int, of: int) -> None:
        """`done` logs of the `of` in a directory are open."""
        now_s = self._clock_s()
        if done == of and now_s - self._began_s >= _INTERVAL_S:
            _logger.info("%s: all %d logs are open after %.1f s", path, of, now_s - self._began_s)
            self._told_s = now_s
        elif now_s - self._told_s >= _INTERVAL_S:
            _logger.info("%s: %d of %d logs are open, %d to go", path, done, of, of - done)
            self._told_s = now_s
