"""Subscription of a caught-up follower to one partition (pure).

While the log end offset, the high watermark and the role do not change, a fetch session skips the partition, so that thousands
of idle partitions cost a fetch nothing. The session is called once when one of them changes, and reads the partition again.
At that moment the leader records what each skipped fetch would have recorded: the follower was at the log end offset until its
last fetch.
"""

from collections.abc import Callable

from headrace.replication.leader import FollowerProgress, LeaderState
from headrace.replication.partition import Partition


class IdleFollower:
    """One follower of one partition, from the answer that told it everything until the partition changes."""

    __slots__ = (
        "_end_offset",
        "_fetched_ms",
        "_leader",
        "_log_start_offset",
        "_on_append",
        "_on_high_watermark",
        "_progress",
        "_replica",
        "partition",
    )

    def __init__(
        self,
        partition: Partition,
        leader: LeaderState,
        replica: int,
        progress: FollowerProgress,
        *,
        fetched_ms: Callable[[], int],
        on_high_watermark: Callable[[], None],
        on_append: Callable[[], None],
    ) -> None:
        """`fetched_ms` is the time of the follower's last fetch. `on_high_watermark` or `on_append` is called, once."""
        self.partition = partition
        self._leader = leader
        self._replica = replica
        self._progress = progress
        self._end_offset = partition.log.log_end_offset
        self._log_start_offset = partition.log.log_start_offset
        self._fetched_ms = fetched_ms
        self._on_high_watermark = on_high_watermark
        self._on_append = on_append
        partition.append_waiters.add(self._appended)
        partition.high_watermark_waiters.add(self._high_watermark_changed)

    def end(self) -> None:
        """Unsubscribe: the session reads the partition again."""
        self.partition.append_waiters.remove(self._appended)
        self.partition.high_watermark_waiters.remove(self._high_watermark_changed)
        progress, fetched_ms = self._progress, self._fetched_ms()
        progress.caught_up_ms = max(progress.caught_up_ms, fetched_ms)
        progress.fetched_ms = max(progress.fetched_ms, fetched_ms)

    def is_valid(self) -> bool:
        """Whether the leader state, the follower and the log start offset, which notify nobody, are the same as before."""
        return (
            self.partition.leader is self._leader
            and self._leader.progress_of(self._replica) is self._progress
            and self.partition.log.log_start_offset == self._log_start_offset
        )

    def _appended(self) -> None:
        self.end()
        self._on_append()

    def _high_watermark_changed(self) -> None:
        # An append that also moves the high watermark is notified after it, and so is the end of a role.
        has_grown = self.partition.log.log_end_offset != self._end_offset
        self.end()
        if has_grown or self.partition.leader is not self._leader:
            self._on_append()
        else:
            self._on_high_watermark()


def idle_follower(
    partition: Partition,
    replica: int,
    fetch_offset: int,
    *,
    told: tuple[int, int],
    fetched_ms: Callable[[], int],
    on_high_watermark: Callable[[], None],
    on_append: Callable[[], None],
) -> IdleFollower | None:
    """The subscription of a follower that is at the log end offset and was told this high watermark and log start offset; else None."""
    leader = partition.leader
    progress = None if leader is None else leader.progress_of(replica)
    if leader is None or progress is None or progress.end_offset != fetch_offset:
        return None
    log = partition.log
    if fetch_offset != log.log_end_offset or told != (
        partition.high_watermark,
        log.log_start_offset,
    ):
        return None
    return IdleFollower(
        partition,
        leader,
        replica,
        progress,
        fetched_ms=fetched_ms,
        on_high_watermark=on_high_watermark,
        on_append=on_append,
    )
