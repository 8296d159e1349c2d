"""Offsets that were committed in transactions which are still open. Pure.

Owns which producers have such offsets in which group. What is told of them to clients, and the offsets that count, are left to
others. Of several commits for a partition the one that was written last counts, whatever order their transactions end in: compaction
keeps only the last one, and a coordinator that loads its records must come to the same end.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from headrace.coordinator.group.stored_records import CommittedOffset, OffsetRecord


@dataclass(slots=True)
class _Pending:
    order: int
    committed: CommittedOffset | None  # None once a later commit counts instead


_Place = tuple[str, int]


class PendingOffsets:
    """By producer id, group, and topic with partition."""

    __slots__ = ("_by_producer", "_next_order", "_producers_of")

    def __init__(self) -> None:
        self._by_producer: dict[int, dict[str, dict[_Place, _Pending]]] = {}
        self._producers_of: dict[str, set[int]] = {}
        self._next_order = 0

    def __len__(self) -> int:
        return sum(
            len(places) for groups in self._by_producer.values() for places in groups.values()
        )

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PendingOffsets)
            and self._producers_of == other._producers_of
            and list(self.entries()) == list(other.entries())
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    # -- what is pending -------------------------------------------------------------------------

    @property
    def groups(self) -> frozenset[str]:
        """The groups in which a transaction is open."""
        return frozenset(self._producers_of)

    def is_open(self, group_id: str) -> bool:
        """Whether a transaction with offsets of this group is open."""
        return group_id in self._producers_of

    def has(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction is open that has committed an offset for the partition."""
        place = topic, partition
        return any(place in places for places in self._of_group(group_id))

    def places(self, group_id: str) -> set[_Place]:
        """The topics and partitions of a group that have such offsets."""
        return {place for places in self._of_group(group_id) for place in places}

    def entries(self) -> Iterator[tuple[int, OffsetRecord]]:
        """Producer ids and the offsets that count if their transactions are committed, in the order in which they were written."""
        rows = [
            (pending.order, producer_id, OffsetRecord(group_id, *place, pending.committed))
            for producer_id, groups in self._by_producer.items()
            for group_id, places in groups.items()
            for place, pending in places.items()
            if pending.committed is not None
        ]
        for _, producer_id, record in sorted(rows):
            yield producer_id, record

    def _of_group(self, group_id: str) -> Iterator[dict[_Place, _Pending]]:
        for producer_id in self._producers_of.get(group_id, ()):
            yield self._by_producer[producer_id][group_id]

    # -- changing --------------------------------------------------------------------------------

    def add(self, producer_id: int, record: OffsetRecord) -> None:
        """An offset was committed in a transaction of this producer."""
        group_id, topic, partition, committed = record
        self._next_order += 1
        places = self._by_producer.setdefault(producer_id, {}).setdefault(group_id, {})
        places[topic, partition] = _Pending(self._next_order, committed)
        self._producers_of.setdefault(group_id, set()).add(producer_id)

    def supersede(
        self, group_id: str, topic: str, partition: int, before: int | None = None
    ) -> None:
        """A commit that counts was written after what is pending (or after the entries with an order below `before`)."""
        for places in self._of_group(group_id):
            pending = places.get((topic, partition))
            if pending is not None and (before is None or pending.order < before):
                pending.committed = None

    def forget(self, group_id: str, topic: str, partition: int) -> None:
        """The partition's offsets were deleted. The transactions stay open."""
        for places in self._of_group(group_id):
            places.pop((topic, partition), None)

    def end(self, producer_id: int, *, is_commit: bool) -> list[OffsetRecord]:
        """A producer's transaction has ended. Returns the offsets that count from now on."""
        groups = self._by_producer.pop(producer_id, {})
        counting: list[OffsetRecord] = []
        for group_id, places in groups.items():
            producers = self._producers_of[group_id]
            producers.discard(producer_id)
            if not producers:
                del self._producers_of[group_id]
            for (topic, partition), pending in places.items():
                if is_commit and pending.committed is not None:
                    counting.append(OffsetRecord(group_id, topic, partition, pending.committed))
                    self.supersede(group_id, topic, partition, pending.order)
        return counting
