"""Says once that there is no room on the disk for a partition, and once that there is again: not with every record."""

import logging

from headrace.errors import DiskFull
from headrace.ids import TopicPartition

_logger = logging.getLogger(__name__)


class RoomNote:
    """What was last said of one partition."""

    __slots__ = ("_is_lacking", "_where")

    def __init__(self, where: TopicPartition) -> None:
        self._where = where
        self._is_lacking = False

    def lacking(self, error: DiskFull) -> None:
        """A write was refused."""
        if not self._is_lacking:
            self._is_lacking = True
            _logger.error("%s: %s; writes are refused until there is room", self._where, error)

    def found(self) -> None:
        """A write was taken."""
        if self._is_lacking:
            self._is_lacking = False
            _logger.info("%s: there is room again, writes are taken", self._where)
