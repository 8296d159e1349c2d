"""Listens to what brokers log: an exception that was caught and logged is one that nobody thought of, unless a disk failed."""

import logging
from asyncio.events import _get_running_loop
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headrace.errors import DiskFailed
from headrace.testing.simulation.story import Story, Violation
from headrace.testing.virtual.event_loop import VirtualEventLoop


class _Watch(logging.Handler):
    def __init__(self, story: Story, fail: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._story = story
        self._fail = fail

    def emit(self, record: logging.LogRecord) -> None:
        loop = _get_running_loop()
        host = loop.host if isinstance(loop, VirtualEventLoop) else "a worker thread"
        text = f"{host} logs: {record.levelname} {record.getMessage()}"
        error = None if record.exc_info is None else record.exc_info[1]
        if error is None:
            self._story.tell(text)
            return
        self._story.tell(f"{text} {error!r}")
        if record.levelno >= logging.ERROR and not isinstance(error, DiskFailed):
            violation = Violation(f"no unexpected exception: {text}: {error!r}")
            violation.__cause__ = error
            self._fail(violation)


@contextmanager
def watched_logs(
    story: Story, fail: Callable[[BaseException], None], level: int = logging.ERROR
) -> Iterator[None]:
    """For the length of a run: lines of this level and above go into the story, and nowhere else."""
    logger = logging.getLogger("headrace")
    before = logger.level, logger.propagate, logger.handlers[:]
    disabled = logging.root.manager.disable
    watch = _Watch(story, fail)
    logging.disable(logging.NOTSET)
    logger.handlers[:] = [watch]
    logger.setLevel(level)
    logger.propagate = False
    try:
        yield
    finally:
        logger.handlers[:] = before[2]
        logger.propagate = before[1]
        logger.setLevel(before[0])
        logging.disable(disabled)
