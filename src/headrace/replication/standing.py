"""A follower that has all of a partition and was told everything: the leader need not look before something stirs (pure).

Thousands of idle partitions cost a fetch nothing this way. Whoever made it hears once when the log grows, the high watermark
moves or the role changes, and then looks again. What each fetch would have noted of the follower is noted at that moment: it
was at the end until its last fetch.
"""

from collections.abc import Callable

from headrace.replication.leader import FollowerProgress, LeaderState
from headrace.replication.partition import Partition


class Standing:
    """One follower of one partition, from an answer until something happens."""

    __slots__ = (
        "_end_offset",
        "_fetched_ms",
        "_leader",
        "_log_start_offset",
        "_on_growth",
        "_on_move",
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
        on_move: Callable[[], None],
        on_growth: Callable[[], None],
    ) -> None:
        """`fetched_ms` is the time of the follower's last fetch. One of the others is called, once."""
        self.partition = partition
        self._leader = leader
        self._replica = replica
        self._progress = progress
        self._end_offset = partition.log.log_end_offset
        self._log_start_offset = partition.log.log_start_offset
        self._fetched_ms = fetched_ms
        self._on_move = on_move
        self._on_growth = on_growth
        partition.appended.add(self._grew)
        partition.growth.add(self._moved)

    def end(self) -> None:
        """The follower is looked at again."""
        self.partition.appended.remove(self._grew)
        self.partition.growth.remove(self._moved)
        progress, fetched_ms = self._progress, self._fetched_ms()
        progress.caught_up_ms = max(progress.caught_up_ms, fetched_ms)
        progress.fetched_ms = max(progress.fetched_ms, fetched_ms)

    def is_still_right(self) -> bool:
        """Whether nothing has changed either of what nobody is told about."""
        return (
            self.partition.leader is self._leader
            and self._leader.progress_of(self._replica) is self._progress
            and self.partition.log.log_start_offset == self._log_start_offset
        )

    def _grew(self) -> None:
        self.end()
        self._on_growth()

    def _moved(self) -> None:
        # An append may move the high watermark, and is told about after that; so is the end of a role.
        has_grown = self.partition.log.log_end_offset != self._end_offset
        self.end()
        if has_grown or self.partition.leader is not self._leader:
            self._on_growth()
        else:
            self._on_move()


def standing(
    partition: Partition,
    replica: int,
    fetch_offset: int,
    *,
    told: tuple[int, int],
    fetched_ms: Callable[[], int],
    on_move: Callable[[], None],
    on_growth: Callable[[], None],
) -> Standing | None:
    """For a follower that is at the end and was told this high watermark and log start offset; else None."""
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
    return Standing(
        partition,
        leader,
        replica,
        progress,
        fetched_ms=fetched_ms,
        on_move=on_move,
        on_growth=on_growth,
    )
