"""Placement for any number of brokers, racks, partitions and replicas."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from headrace.controller.placement import place


@st.composite
def clusters(draw: st.DrawFn) -> dict[int, str | None]:
    brokers = draw(st.sets(st.integers(0, 50), min_size=1, max_size=9))
    if draw(st.booleans()):
        return dict.fromkeys(brokers)
    return {broker: draw(st.sampled_from("xyz")) for broker in sorted(brokers)}


@given(
    racks=clusters(),
    partitions=st.integers(1, 40),
    start=st.integers(0, 8),
    shift=st.integers(0, 8),
    data=st.data(),
)
def test_replicas_are_apart_and_leaders_are_spread(
    racks: dict[int, str | None], partitions: int, start: int, shift: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    placed = place(
        racks,
        partitions=partitions,
        replication_factor=factor,
        start_index=start,
        start_shift=shift,
    )
    assert len(placed) == partitions
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
        if None not in racks.values():
            used = {racks[broker] for broker in replicas}
            assert len(used) == min(factor, len(set(racks.values())))
    leaders = Counter(replicas[0] for replicas in placed)
    busiest = max(leaders.values())
    assert busiest - min(leaders.get(broker, 0) for broker in racks) <= 1


@given(racks=clusters(), first=st.integers(1, 20), more=st.integers(1, 20), data=st.data())
def test_growing_goes_on_where_creation_would_have(
    racks: dict[int, str | None], first: int, more: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    at_once = place(racks, partitions=first + more, replication_factor=factor)
    earlier_rounds = (first - 1) // len(racks)
    later = place(
        racks,
        partitions=more,
        replication_factor=factor,
        first_partition=first,
        start_shift=earlier_rounds,
    )
    assert at_once[first:] == later
