"""What the driver asks the cluster: which partitions there are, where they begin and end, what a group has committed.

It owns a client and is used by one thread. Which offsets a query starts and ends at is decided here; what is read in between is
not.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from headrace.client.admin.admin import Admin
from headrace.client.admin.group_offsets import alter_offsets, committed_offsets
from headrace.client.admin.partitions import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FoundOffset,
    list_offsets_at,
)
from headrace.client.exchange import Disconnected
from headrace.client.retries import REAL_TIME, BlockingTime
from headrace.ids import NO_TOPIC_ID, TopicPartition
from headrace.pipelines.offset_ranges import Offsets
from headrace.pipelines.options.known_options import EARLIEST, LATEST, OptionError, PartitionNumbers
from headrace.pipelines.options.source_options import Place, SourceOptions, TopicChoice
from headrace.wire.error_code import ErrorCode
from headrace.wire.refusal import Refused

T = TypeVar("T")

_NONE_THAT_YOUNG: Final = -1
_LEADER_PATIENCE_S: Final = 120.0  # an election waits until the dead leader's session has run out
_TOPIC_PATIENCE_S: Final = 5.0  # a topic that was just created is not known everywhere at once


class ClusterOffsets:
    """Asks for one source. Close it."""

    def __init__(self, options: SourceOptions, blocking_time: BlockingTime = REAL_TIME) -> None:
        self._options = options
        self._time = blocking_time
        self._admin = Admin(
            options.bootstrap_servers, client_id=options.client_id, blocking_time=blocking_time
        )
        self.topic_ids: dict[str, str] = {}
        self._partitions: list[TopicPartition] = []
        self._good_until = 0.0
        self._was_reached = False

    def close(self) -> None:
        self._admin.close()

    def partitions(self, *, wait_for_topics: bool = False) -> list[TopicPartition]:
        """The chosen partitions that exist. Raises OptionError where a named topic does not, after some patience.

        What was found is good for `partition.metadata.cache.ttl.ms`: a batch takes little longer than such a question.
        """
        if self._time.now_s() < self._good_until:
            return list(self._partitions)
        patience = self._time.patience(_TOPIC_PATIENCE_S)
        while True:
            found, missing = self._patiently(self._look)
            if not missing or not wait_for_topics:
                self._partitions = found
                self._good_until = self._time.now_s() + self._options.metadata_ttl_ms / 1000
                return list(found)
            if patience.is_over():
                raise OptionError(f"there is no topic {', '.join(missing)} in the cluster")
            patience.pause()

    def _look(self) -> tuple[list[TopicPartition], list[str]]:
        choice = self._options.choice
        answer = self._admin.metadata(None if choice.pattern else choice.topics_among([]))
        there = {
            topic.name: topic
            for topic in answer.topics
            if topic.name is not None
            and topic.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
        }
        chosen = choice.topics_among(
            [name for name, topic in there.items() if not topic.is_internal]
        )
        self.topic_ids = {
            name: str(there[name].topic_id)
            for name in chosen
            if name in there and there[name].topic_id != NO_TOPIC_ID
        }
        found = [
            TopicPartition(name, each.partition_index)
            for name in chosen
            if name in there
            for each in there[name].partitions
            if _is_assigned(choice, name, each.partition_index)
        ]
        return sorted(found), [name for name in chosen if name not in there]

    def ends(self, expected: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where the chosen partitions that exist end now: for read_committed, where the first open transaction begins.

        An expected partition that the cluster does not know is asked for again for some seconds, because a broker that has
        just started may not know it yet. After that it is missing from the answer.
        """
        wanted = set(expected)
        patience = self._time.patience(_TOPIC_PATIENCE_S)
        while True:
            found = self._list(dict.fromkeys(self.partitions(), LATEST))
            if wanted <= found.keys() or patience.is_over():
                return found
            patience.pause()
            self._good_until = 0.0

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where these partitions end now. Raises OptionError where one does not exist."""
        return self._list_all(dict.fromkeys(partitions, LATEST))

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Where these partitions begin now. Raises OptionError where one does not exist."""
        return self._list_all(dict.fromkeys(partitions, EARLIEST))

    def resolve(self, place: Place, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that a place means in these partitions. Raises OptionError."""
        if place.timestamp_ms is not None:
            everywhere = dict.fromkeys(partitions, place.timestamp_ms)
            return self._by_time(place, everywhere)
        if place.timestamps is not None:
            return self._by_time(
                place, _for_each("…OffsetsByTimestamp", place.timestamps, partitions)
            )
        if place.offsets is not None:
            wanted = _for_each("…Offsets", place.offsets, partitions)
            words = {each: offset for each, offset in wanted.items() if offset < 0}
            return wanted | self._list_all(words)
        assert place.everywhere is not None
        found = self._list_all(dict.fromkeys(partitions, place.everywhere))
        if place.committed:
            committed = committed_offsets(self._admin, self._options.group_id)
            found |= {each: committed[each].offset for each in partitions if each in committed}
        return found

    def commit(self, group_id: str, offsets: Offsets) -> None:
        """Show a group's readers, and those who watch its lag, how far this query is."""
        alter_offsets(self._admin, group_id, offsets)

    def _by_time(self, place: Place, wanted: Offsets) -> dict[TopicPartition, int]:
        found = self._list_all(wanted)
        unmatched = [each for each, offset in found.items() if offset == _NONE_THAT_YOUNG]
        if unmatched and not place.unmatched_is_latest:
            raise OptionError(
                f"{unmatched[0]} has no record at or after {wanted[unmatched[0]]}"
                " (startingOffsetsByTimestampStrategy=latest starts at its end then)"
            )
        return found | (self.latest(unmatched) if unmatched else {})

    def _list_all(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets of all these partitions. A topic that was just created may be unknown to some broker for a moment."""
        patience = self._time.patience(_TOPIC_PATIENCE_S)
        while True:
            found = self._list(timestamps)
            missing = [each for each in timestamps if each not in found]
            if not missing:
                return found
            if patience.is_over():
                raise OptionError(f"there is no partition {missing[0]} in the cluster any more")
            patience.pause()

    def _list(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Ask each partition's leader; where the leader was lost or moved, the new one is waited for.

        A partition that the cluster does not know is missing from the answer: no election will bring it back.
        Raises Refused.
        """
        results = self._patiently(
            lambda: list_offsets_at(
                self._admin,
                timestamps,
                isolation_level=(
                    READ_COMMITTED if self._options.read_committed else READ_UNCOMMITTED
                ),
                patience_s=_LEADER_PATIENCE_S,
            )
        )
        found: dict[TopicPartition, int] = {}
        for partition, result in results.items():
            if isinstance(result, FoundOffset):
                found[partition] = result.offset
            elif result.error_code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise Refused.of(result)
        return found

    def _patiently(self, ask: Callable[[], T]) -> T:
        """A cluster that was there and went is waited for; one that never was there is a wrong address."""
        patience = self._time.patience(_LEADER_PATIENCE_S)
        while True:
            try:
                found = ask()
            except Disconnected:
                if not self._was_reached or patience.is_over():
                    raise
                patience.pause()
            else:
                self._was_reached = True
                return found


def _is_assigned(choice: TopicChoice, topic: str, number: int) -> bool:
    return choice.partitions is None or number in choice.partitions.get(topic, ())


def _for_each(
    what: str, numbers: PartitionNumbers, partitions: list[TopicPartition]
) -> dict[TopicPartition, int]:
    """The numbers, which have to be there for exactly these partitions."""
    given = {
        TopicPartition(topic, partition): number
        for topic, of_topic in numbers.items()
        for partition, number in of_topic.items()
    }
    missing = sorted(set(partitions) - given.keys())
    unknown = sorted(given.keys() - set(partitions))
    if missing or unknown:
        text = f"nothing for {missing[0]}" if missing else f"{unknown[0]}, which is not read"
        raise OptionError(
            f"{what} must name every partition that is read, and no other: it has {text}"
        )
    return given
