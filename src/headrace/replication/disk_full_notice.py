"""Logs a full disk once per partition when appends start to be refused, and once when they succeed again."""

import logging

from headrace.errors import DiskFull
from headrace.ids import TopicPartition

_logger = logging.getLogger(__name__)


class DiskFullNotice:
    """Notice of one partition: remembers since when appends are refused."""

    __slots__ = ("_where", "since_ms")

    def __init__(self, where: TopicPartition) -> None:
        self._where = where
        self.since_ms: int | None = None  # None if the last append was accepted

    @property
    def is_refusing(self) -> bool:
        """Whether the last append was refused."""
        return self.since_ms is not None

    def refused(self, error: DiskFull, now_ms: int) -> None:
        """An append was refused because the disk is full."""
        if self.since_ms is None:
            self.since_ms = now_ms
            _logger.error(
                "%s: %s; appends are refused until there is room on the disk", self._where, error
            )

    def accepted(self) -> None:
        """An append succeeded."""
        if self.since_ms is not None:
            self.since_ms = None
            _logger.info("%s: there is room on the disk again, appends are accepted", self._where)
