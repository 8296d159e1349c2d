"""Consumer groups: how many are in which state, what they committed, how far they are behind (pure).

A group stands on the page of its coordinator. How far it is behind can be said for partitions that the same broker
leads, because only a leader knows the high watermark.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from headrace.broker.pages.exposition import Sample, escape, family, labels, single
from headrace.coordinator.group.state import GroupState
from headrace.coordinator.group.stored_records import CommittedOffset
from headrace.replication.partition_table import PartitionTable

_PREFIX: Final = "kafka_coordinator_group_groupmetadatamanager"

CommittedByTopic: TypeAlias = Mapping[str, Mapping[int, CommittedOffset]]


class GroupCounts(Protocol):
    """What is counted of the groups that this broker coordinates."""

    @property
    def groups_by_state(self) -> Mapping[GroupState, int]:
        """Groups per state."""

    @property
    def offset_count(self) -> int:
        """Committed offsets."""


GroupProgress: TypeAlias = tuple[str, int, CommittedByTopic]
"""A group's id, the number of its members, and what it committed."""

ReadProgress: TypeAlias = Callable[[], Iterable[GroupProgress]]


def group_count_families(groups: GroupCounts) -> Iterator[str]:
    """Groups by state. Kafka's state Dead is never seen here, but dashboards ask for it."""
    by_state = groups.groups_by_state
    yield from single(
        f"{_PREFIX}_numgroups", "gauge", "Groups coordinated here.", sum(by_state.values())
    )
    for state in GroupState:
        yield from single(
            f"{_PREFIX}_numgroups{state.value.lower()}",
            "gauge",
            f"Groups coordinated here that are in the state {state.value}.",
            by_state.get(state, 0),
        )
    yield from single(
        f"{_PREFIX}_numgroupsdead", "gauge", "Always 0: a group that is gone is forgotten.", 0
    )
    yield from single(
        f"{_PREFIX}_numoffsets", "gauge", "Committed offsets held here.", groups.offset_count
    )


class _Place(NamedTuple):
    """Where a group stands in a partition; `lag` is None where the high watermark is not known."""

    topic: str
    partition: int
    offset: int
    lag: int | None


def progress_families(read_progress: ReadProgress, table: PartitionTable) -> Iterator[str]:
    """Offsets and lag, under the names of kafka_exporter."""
    progress = list(read_progress())
    yield from family(
        "kafka_consumergroup_members",
        "gauge",
        "Members of a group.",
        [(labels(consumergroup=group_id), members) for group_id, members, _ in progress],
    )
    groups = [_Group(escape(group_id), committed, table) for group_id, _, committed in progress]
    for name, text, samples_of in (
        ("current_offset", "Offset that a group committed for a partition.", _Group.offsets),
        ("current_offset_sum", "Sum of a group's offsets in a topic.", _Group.offset_sums),
        ("lag", "Committed records that a group has still to read.", _Group.lags),
        ("lag_sum", "Sum of a group's lags in a topic.", _Group.lag_sums),
    ):
        samples = (sample for group in groups for sample in samples_of(group))
        yield from family(f"kafka_consumergroup_{name}", "gauge", text, samples)


class _Group:
    """A group's samples. Each method walks through the offsets at once, so that they cannot change meanwhile."""

    __slots__ = ("_committed", "_id", "_table")

    def __init__(self, escaped_id: str, committed: CommittedByTopic, table: PartitionTable) -> None:
        self._id = escaped_id
        self._committed = committed
        self._table = table

    def offsets(self) -> list[Sample]:
        return [(self._labels(place), place.offset) for place in self._places()]

    def lags(self) -> list[Sample]:
        return [
            (self._labels(place), place.lag) for place in self._places() if place.lag is not None
        ]

    def offset_sums(self) -> list[Sample]:
        return self._sums((place.topic, place.offset) for place in self._places())

    def lag_sums(self) -> list[Sample]:
        return self._sums(
            (place.topic, place.lag) for place in self._places() if place.lag is not None
        )

    def _places(self) -> Iterator[_Place]:
        for topic, partitions in self._committed.items():
            for index, committed in partitions.items():
                replica = self._table.get(topic, index)
                lag = None
                if replica is not None and replica.is_leader:
                    # An offset beyond the end is what a topic leaves behind that was made anew.
                    lag = max(0, replica.high_watermark - committed.offset)
                yield _Place(topic, index, committed.offset, lag)

    def _labels(self, place: _Place) -> str:
        topic = escape(place.topic)
        return f'{{consumergroup="{self._id}",topic="{topic}",partition="{place.partition}"}}'

    def _sums(self, figures: Iterable[tuple[str, int]]) -> list[Sample]:
        sums: Counter[str] = Counter()
        for topic, figure in figures:
            sums[topic] += figure
        return [
            (f'{{consumergroup="{self._id}",topic="{escape(topic)}"}}', figure)
            for topic, figure in sums.items()
        ]
