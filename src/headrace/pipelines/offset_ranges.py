"""Offsets of many partitions: as Spark stores them, shared out by limits, cut into ranges for tasks. Pure.

An offset as Spark stores it is what its Kafka connector writes, `{"topic":{"0":23}}`, and beside the topics `$topicIds`, so
that a topic created anew under an old name is noticed. Spark compares offsets as text: keys are always in the same order.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from headrace.ids import TopicPartition

TOPIC_IDS: Final = "$topicIds"  # no topic can have this name

Offsets = Mapping[TopicPartition, int]
StoredOffset = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Offsets of one partition, `end` not included."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(self.end - self.start, 0)


def stored(offsets: Offsets, topic_ids: Mapping[str, str]) -> StoredOffset:
    """Offsets as Spark stores them."""
    found: StoredOffset = {}
    if topic_ids:
        topics = {partition.topic for partition in offsets}
        found[TOPIC_IDS] = {topic: topic_ids[topic] for topic in sorted(topics & topic_ids.keys())}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def offsets_in(found: StoredOffset) -> dict[TopicPartition, int]:
    """What was stored, ids left out. Offsets of Spark's own Kafka connector are understood."""
    return {
        TopicPartition(topic, int(number)): int(offset)
        for topic, numbers in found.items()
        if topic != TOPIC_IDS
        for number, offset in numbers.items()
    }


def topic_ids_in(found: StoredOffset) -> dict[str, str]:
    return dict(found.get(TOPIC_IDS, {}))


def limited(start: Offsets, latest: Offsets, max_offsets: int) -> dict[TopicPartition, int]:
    """At most `max_offsets` more than `start`, shared out by how far each partition is behind, at least one each."""
    behind = {each: max(latest[each] - start.get(each, 0), 0) for each in latest}
    total = sum(behind.values())
    if total <= max_offsets:
        return dict(latest)
    ends: dict[TopicPartition, int] = {}
    for each, size in behind.items():
        share = max_offsets * size / total
        step = math.ceil(share) if share < 1 else math.floor(share)
        ends[each] = min(start.get(each, 0) + step, latest[each]) if size else latest[each]
    return ends


def cut(
    ranges: Iterable[OffsetRange], *, min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Ranges for tasks: none longer than `max_records`, and about `min_partitions` of them in all."""
    whole = [each for each in ranges if each.size > 0]
    if max_records is not None:
        whole = [
            part for each in whole for part in _pieces(each, math.ceil(each.size / max_records))
        ]
    if min_partitions is None or len(whole) >= min_partitions:
        return whole
    total = sum(each.size for each in whole)
    return [
        part
        for each in whole
        for part in _pieces(each, max(round(each.size / total * min_partitions), 1))
    ]


def shared_out(ranges: Sequence[OffsetRange], enough: int) -> list[list[OffsetRange]]:
    """Ranges by task: small ones share a task until it has `enough` offsets, because a task costs more than reading them."""
    tasks: list[list[OffsetRange]] = []
    size = enough
    for each in ranges:
        if size + each.size > enough:
            tasks.append([])
            size = 0
        tasks[-1].append(each)
        size += each.size
    return tasks


def _pieces(whole: OffsetRange, count: int) -> list[OffsetRange]:
    """A range in `count` pieces, as even as can be."""
    count = min(count, whole.size)
    places = [whole.start + whole.size * number // count for number in range(count + 1)]
    return [
        OffsetRange(partition=whole.partition, start=start, end=end)
        for start, end in pairwise(places)
    ]
