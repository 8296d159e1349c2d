"""The follower's side of a fetch session (KIP-227), pure: remembers what the leader was sent, so that only changes are sent.

Rule of order: what happens to partitions is noted as it happens; `ask` for each request, then `answered` with its answer, or `start_over` if there is none. Both sides hold the
same picture as long as that is kept. Whatever breaks it makes the next request a full one, which also ends the old session: an
error for the whole request, a lost connection, and an answer that was not taken as it was, because the leader believes by then
that its high watermark has been heard. A partition that an answer does not name has nothing new.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from headrace.replication.following import question
from headrace.replication.partition import Partition
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.fetch import (
    FetchPartition,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)

_NO_SESSION: Final = 0
_FULL: Final = 0
_MAX_EPOCH: Final = 2**31 - 1

Place: TypeAlias = tuple[UUID, int]
# Leader epoch, log end offset, durable log start, newest epoch in the log, where a gap is looked for: a question is the same as
# long as these are.
Told: TypeAlias = tuple[int, int, int, int, int | None]


class Asked(NamedTuple):
    """The content of one fetch request."""

    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FollowerSession:
    """The session of this broker with one leader."""

    __slots__ = ("_by_place", "_changed", "_epoch", "_max_bytes", "_session_id", "_told", "_wanted")

    def __init__(self, max_bytes: int) -> None:
        """`max_bytes` are asked for of each partition."""
        self._max_bytes = max_bytes
        self._session_id = _NO_SESSION
        self._epoch = _FULL
        self._wanted: dict[Partition, None] = {}
        self._changed: dict[
            Partition, None
        ] = {}  # partitions that may have changed since they were sent
        self._told: dict[Partition, Told] = {}
        self._by_place: dict[Place, Partition] = {}

    def __len__(self) -> int:
        return len(self._wanted)

    def want(self, partition: Partition) -> None:
        """Fetch the partition from now on."""
        self._wanted[partition] = None
        self._changed[partition] = None

    def leave(self, partition: Partition) -> None:
        """Do not fetch the partition until `want` is called again."""
        self._wanted.pop(partition, None)
        self._changed[partition] = None

    def mark_changed(self, partition: Partition) -> None:
        """The log of this partition may have changed."""
        self._changed[partition] = None

    def mark_all_changed(self) -> None:
        """The log start offset of every partition may have changed: retention moves it without a notice."""
        self._changed.update(self._wanted)

    def ask(self) -> Asked:
        """The next request: it fetches all wanted partitions and no others."""
        if self._epoch == _FULL:
            self._told.clear()
            self._by_place.clear()
            self._changed.update(self._wanted)
        told = self._told
        changed: list[Partition] = []
        left: list[Partition] = []
        for partition in self._changed:
            if partition in self._wanted:
                state = _state(partition)
                if told.get(partition) != state:
                    told[partition] = state
                    changed.append(partition)
            elif told.pop(partition, None) is not None:
                left.append(partition)
        self._changed.clear()
        for partition in changed:
            self._by_place[_place(partition)] = partition
        gone = [partition for partition in left if self._forget(partition)]
        return Asked(self._session_id, self._epoch, self._topics(changed), _forgotten(gone))

    def _forget(self, partition: Partition) -> bool:
        """Whether the leader must, too: to it, one made anew in the same place is the same."""
        place = _place(partition)
        if self._by_place[place] is not partition:
            return False
        del self._by_place[place]
        return True

    def answered(self, response: FetchResponse) -> bool:
        """Update the session by an answer. Returns whether the answer may be used for partitions."""
        if response.error_code:
            is_unknown = response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._session_id = _NO_SESSION if is_unknown else self._session_id
            self._epoch = _FULL
            return False
        self._session_id = response.session_id
        if response.session_id == _NO_SESSION:  # the leader has no room for a session
            self._epoch = _FULL
        else:
            self._epoch = 1 if self._epoch == _MAX_EPOCH else self._epoch + 1
        return True

    def start_over(self) -> None:
        """Begin a new session, because a request or an answer of the present one may be lost."""
        self._epoch = _FULL

    def asked(self, topic_id: UUID, index: int) -> tuple[Partition, int] | None:
        """The partition that an answer is about, and the leader epoch in which it was last fetched."""
        partition = self._by_place.get((topic_id, index))
        return None if partition is None else (partition, self._told[partition][0])

    def _topics(self, partitions: Iterable[Partition]) -> list[FetchTopic]:
        topics: list[FetchTopic] = []
        asks: dict[UUID, list[FetchPartition]] = {}
        for partition in partitions:
            topic_id = partition.topic_id
            if topic_id not in asks:
                asks[topic_id] = []
                name = partition.topic_partition.topic
                topics.append(FetchTopic(topic=name, topic_id=topic_id, partitions=asks[topic_id]))
            asks[topic_id].append(question(partition, max_bytes=self._max_bytes))
        return topics


def _state(partition: Partition) -> Told:
    log = partition.log
    return (
        partition.leader_epoch,
        log.log_end_offset,
        log.durable_start,
        log.leader_epochs.latest,
        partition.gap_check,
    )


def _place(partition: Partition) -> Place:
    return partition.topic_id, partition.topic_partition.partition


def _forgotten(partitions: Iterable[Partition]) -> list[ForgottenTopic]:
    indexes: dict[tuple[str, UUID], list[int]] = {}
    for partition in partitions:
        topic, index = partition.topic_partition
        indexes.setdefault((topic, partition.topic_id), []).append(index)
    return [
        ForgottenTopic(topic=topic, topic_id=topic_id, partitions=numbers)
        for (topic, topic_id), numbers in indexes.items()
    ]
