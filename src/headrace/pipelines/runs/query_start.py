"""Start of a streaming query, up to the moment when its sources are there.

Each source is a Python process beside Spark's driver. Spark gives it ten seconds to connect, which cannot be changed, and loading
it takes more than a second of a core: many queries that start together, or a busy machine, need longer. So the next query is
started when the sources of the last one are there, and a query whose process came too late is started again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_CAME_TOO_LATE: Final = "Python worker failed to connect back"
_INITIALIZING: Final = "Initializing"  # how Spark's status begins until the sources are there
_ATTEMPTS: Final = 3
_POLL_S: Final = 0.05


def start_patiently(
    start: Callable[[], StreamingQuery], *, sleep: Callable[[float], None] = time.sleep
) -> StreamingQuery:
    """The query that `start` starts, with its sources; one that failed otherwise is returned as it is."""
    attempts_left = _ATTEMPTS
    while True:
        query = start()
        attempts_left -= 1
        if not _failed_to_connect(query, sleep) or not attempts_left:
            return query


def _failed_to_connect(query: StreamingQuery, sleep: Callable[[float], None]) -> bool:
    while query.isActive and str(query.status["message"]).startswith(_INITIALIZING):
        sleep(_POLL_S)
    if query.isActive:
        return False
    error = query.exception()
    return error is not None and _CAME_TOO_LATE in str(error)
