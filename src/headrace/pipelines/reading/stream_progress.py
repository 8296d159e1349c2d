"""How far a streaming query may go next: the decisions of the streaming source, without Spark.

Spark logs only where a batch ends. Until the first batch is committed, a restart asks for the initial offsets again, and "latest"
has moved by then. So the first batch is made empty on purpose: its logged end is the starting point from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from headrace.ids import TopicPartition
from headrace.pipelines.offset_ranges import (
    OffsetRange,
    Offsets,
    StoredOffset,
    limited,
    offsets_in,
    stored,
    topic_ids_in,
)
from headrace.pipelines.options.source_options import Place, Portions


class Cluster(Protocol):
    """What is asked of `cluster_offsets.ClusterOffsets`."""

    topic_ids: dict[str, str]

    def partitions(self, *, wait_for_topics: bool = False) -> list[TopicPartition]: ...

    def ends(self, expected: Iterable[TopicPartition]) -> dict[TopicPartition, int]: ...

    def resolve(
        self, place: Place, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int]: ...


class StreamProgress:
    """Answers Spark's questions about offsets. `on_loss` is told what is missing; it raises, or does not."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        starting: Place,
        portions: Portions,
        on_loss: Callable[[str], None],
        now_ms: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._starting = starting
        self._portions = portions
        self._on_loss = on_loss
        self._now_ms = now_ms
        self._initial: StoredOffset | None = None
        self._first_batch_is_due = False
        self._is_available_now = False
        self._frozen: dict[TopicPartition, int] | None = None
        self._latest: StoredOffset | None = None
        self._last_portion_ms = now_ms()

    def initial(self) -> StoredOffset:
        """Where a new query starts. Spark may ask more than once; the answer stays the same."""
        if self._initial is None:
            partitions = self._cluster.partitions(wait_for_topics=True)
            offsets = self._cluster.resolve(self._starting, partitions)
            self._initial = stored(offsets, self._cluster.topic_ids)
            self._first_batch_is_due = True
        return self._initial

    def freeze(self) -> None:
        """Trigger.AvailableNow: read what is there when the end of the first batch is asked for, and no more.

        The end offsets are not taken here, because Spark calls this before it asks for the initial offsets: initial
        offsets of "latest" would lie behind the frozen ones.
        """
        self._is_available_now = True

    def latest_known(self) -> StoredOffset | None:
        """Where the partitions ended when last looked at."""
        return self._latest

    def next_end(self, start: StoredOffset, *, everything: bool) -> StoredOffset:
        """The end of the next batch; `start` itself where there is nothing new."""
        if self._first_batch_is_due and start == self._initial:
            self._first_batch_is_due = False
            if self._is_available_now:
                self._look(start)
            return start
        self._first_batch_is_due = False
        latest, ids = self._look(start)
        begin = self._begin(start, latest, ids)
        available = self._available(begin, latest)
        ends = available if everything else self._portion(begin, available)
        found = stored(ends, ids)
        return start if found == start else found

    def _look(self, start: StoredOffset) -> tuple[dict[TopicPartition, int], dict[str, str]]:
        """Where partitions end now, and the ids of their topics; an id that is not told any more is still the one of `start`."""
        latest = self._cluster.ends(offsets_in(start))
        ids = topic_ids_in(start) | self._cluster.topic_ids
        self._latest = stored(latest, ids)
        if self._is_available_now and self._frozen is None:
            self._frozen = dict(latest)
        return latest, ids

    def _available(self, begin: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
        """Up to where may be read: never before `begin`; for Trigger.AvailableNow not behind the frozen end."""
        if self._frozen is None:
            return dict(latest)
        return {
            each: max(begin[each], min(self._frozen.get(each, 0), latest[each])) for each in latest
        }

    def _begin(
        self, start: StoredOffset, latest: Offsets, ids: Mapping[str, str]
    ) -> dict[TopicPartition, int]:
        """Where the next batch begins in each partition that is there: a new partition at its first record."""
        known, known_ids = offsets_in(start), topic_ids_in(start)
        renewed = {topic for topic, its_id in known_ids.items() if ids.get(topic, its_id) != its_id}
        for topic in sorted(renewed):
            self._on_loss(f"topic {topic} was deleted and created anew: its id has changed")
        current = {each: offset for each, offset in known.items() if each.topic not in renewed}
        gone = sorted(current.keys() - latest.keys())
        if gone:
            self._on_loss(
                f"{', '.join(map(str, gone))}: gone, because the topic was deleted or is not subscribed to any more"
            )
        for each, offset in current.items():
            if each in latest and latest[each] < offset:
                self._on_loss(f"{each} ends at {latest[each]}, but was read up to {offset}")
        return {each: min(current.get(each, 0), latest[each]) for each in latest}

    def _portion(self, begin: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
        portions, now_ms = self._portions, self._now_ms()
        if portions.min_offsets is not None and self._frozen is None:
            waiting = sum(latest[each] - begin[each] for each in latest)
            waited_ms = now_ms - self._last_portion_ms
            if waiting < portions.min_offsets and waited_ms < portions.max_delay_ms:
                return dict(begin)
        self._last_portion_ms = now_ms
        if portions.max_offsets is None:
            return dict(latest)
        return limited(begin, latest, portions.max_offsets)

    def planned(self, start: StoredOffset, end: StoredOffset) -> list[list[OffsetRange]]:
        """The ranges of a batch, by task. Empty where it is empty, or, after a restart in the first batch, runs backwards."""
        self._first_batch_is_due = False
        begin, begin_ids, end_ids = offsets_in(start), topic_ids_in(start), topic_ids_in(end)
        ranges = []
        for partition, stop in offsets_in(end).items():
            topic = partition.topic
            old_id, new_id = begin_ids.get(topic), end_ids.get(topic)
            is_renewed = old_id is not None and new_id is not None and old_id != new_id
            first = 0 if is_renewed else begin.get(partition, 0)
            ranges.append(OffsetRange(partition=partition, start=first, end=stop))
        return self._portions.tasks_of(ranges)
