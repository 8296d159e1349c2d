"""The decisions of the streaming source, without Spark: each trap of offsets that Spark lays."""

import json
from collections.abc import Iterable
from typing import Any

import pytest

from headrace.ids import TopicPartition
from headrace.pipelines.offset_ranges import (
    OffsetRange,
    cut,
    limited,
    offsets_in,
    shared_out,
    stored,
)
from headrace.pipelines.options.known_options import EARLIEST, LATEST
from headrace.pipelines.options.source_options import Place, Portions
from headrace.pipelines.reading.stream_progress import StreamProgress

ANY_SIZE = Portions(
    max_offsets=None,
    min_offsets=None,
    max_delay_ms=900_000,
    min_partitions=None,
    max_records_per_partition=None,
)


class FakeCluster:
    """Partitions that grow as the test says."""

    def __init__(self, **ends: list[int]) -> None:
        self.ends_at = ends
        self.topic_ids = {topic: f"id-of-{topic}" for topic in ends}
        self.expected: set[TopicPartition] = set()

    def partitions(self, *, wait_for_topics: bool = False) -> list[TopicPartition]:
        return [
            TopicPartition(name, each)
            for name, all_ in self.ends_at.items()
            for each in range(len(all_))
        ]

    def latest(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {each: self.ends_at[each.topic][each.partition] for each in partitions}

    def ends(self, expected: Iterable[TopicPartition] = ()) -> dict[TopicPartition, int]:
        self.expected = set(expected)
        return self.latest(self.partitions())

    def resolve(self, place: Place, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return (
            self.latest(partitions) if place.everywhere == LATEST else dict.fromkeys(partitions, 0)
        )


class Lost(Exception):
    pass


def fail(what: str) -> None:
    raise Lost(what)


def progress(cluster: FakeCluster, **more: Any) -> StreamProgress:
    chosen: dict[str, Any] = {
        "starting": Place(everywhere=LATEST),
        "portions": ANY_SIZE,
        "on_loss": fail,
        "now_ms": lambda: 0,
    }
    return StreamProgress(cluster, **(chosen | more))


def end_of(found: dict[str, Any]) -> dict[str, int]:
    return {str(each): offset for each, offset in offsets_in(found).items()}


def ranges(of: StreamProgress, start: Any, end: Any) -> list[tuple[str, int, int]]:
    planned = [each for of_task in of.planned(start, end) for each in of_task]
    return [(str(each.partition), each.start, each.end) for each in planned]


def test_the_first_batch_is_empty_and_fixes_the_starting_point() -> None:
    cluster = FakeCluster(a=[100])
    reader = progress(cluster)
    start = reader.initial()
    cluster.ends_at["a"] = [105]
    first = reader.next_end(start, everything=False)
    assert first == start
    assert reader.initial() == start, "Spark asks again in the middle of the first batch"
    assert ranges(reader, start, first) == []
    second = reader.next_end(first, everything=False)
    assert ranges(reader, first, second) == [("a-0", 100, 105)]


def test_a_restart_in_the_first_batch_loses_nothing() -> None:
    cluster = FakeCluster(a=[100])
    first = progress(cluster).initial()  # logged as the end of batch 0, then the driver died
    cluster.ends_at["a"] = [112]
    again = progress(cluster)
    moved = again.initial()
    assert end_of(moved) == {"a-0": 112}
    assert ranges(again, moved, first) == [], (
        "batch 0 is repeated: a range that runs backwards is empty"
    )
    following = again.next_end(first, everything=False)
    assert ranges(again, first, following) == [("a-0", 100, 112)]


def test_a_restart_in_the_first_batch_of_a_query_that_ends_by_itself() -> None:
    cluster = FakeCluster(a=[50])
    first = progress(cluster, starting=Place(everywhere=EARLIEST)).initial()
    again = progress(cluster, starting=Place(everywhere=EARLIEST))
    again.freeze()
    start = again.initial()
    assert ranges(again, start, first) == []
    assert end_of(again.next_end(first, everything=False)) == {"a-0": 50}, "not held back twice"


def test_offsets_are_the_same_text_whatever_the_order() -> None:
    one = stored(
        {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3},
        {"a": "x", "b": "y"},
    )
    other = stored(
        {TopicPartition("a", 0): 3, TopicPartition("b", 9): 2, TopicPartition("b", 10): 1},
        {"b": "y", "a": "x"},
    )
    assert json.dumps(one) == json.dumps(other)


def test_where_nothing_is_new_the_start_itself_comes_back() -> None:
    reader = progress(FakeCluster(a=[5, 6]))
    start = json.loads(json.dumps(reader.initial()))
    assert reader.next_end(start, everything=False) is start
    assert reader.next_end(start, everything=False) is start


def test_offsets_of_sparks_own_connector_are_understood() -> None:
    reader = progress(FakeCluster(a=[9]))
    end = reader.next_end({"a": {"0": 4}}, everything=False)
    assert ranges(reader, {"a": {"0": 4}}, end) == [("a-0", 4, 9)]


def test_a_partition_added_while_running_is_read_from_its_beginning() -> None:
    cluster = FakeCluster(a=[3])
    reader = progress(cluster)
    start = reader.next_end(reader.initial(), everything=False)
    cluster.ends_at["a"] = [3, 4]
    end = reader.next_end(start, everything=False)
    assert ranges(reader, start, end) == [("a-1", 0, 4)]


def test_a_partition_that_is_gone_is_a_loss() -> None:
    cluster = FakeCluster(a=[3], b=[2])
    reader = progress(cluster)
    start = reader.next_end(reader.initial(), everything=False)
    del cluster.ends_at["b"]
    with pytest.raises(Lost, match="b-0: gone"):
        reader.next_end(start, everything=False)


def test_a_partition_that_shrank_is_a_loss() -> None:
    cluster = FakeCluster(a=[30])
    reader = progress(cluster)
    start = reader.next_end(reader.initial(), everything=False)
    cluster.ends_at["a"] = [20]
    with pytest.raises(Lost, match="ends at 20, but was read up to 30"):
        reader.next_end(start, everything=False)


def test_a_topic_created_anew_is_a_loss_even_when_it_has_grown_past_the_old_one() -> None:
    cluster = FakeCluster(a=[30])
    reader = progress(cluster)
    start = reader.next_end(reader.initial(), everything=False)
    cluster.topic_ids["a"], cluster.ends_at["a"] = "another", [40]
    with pytest.raises(Lost, match="its id has changed"):
        reader.next_end(start, everything=False)


def test_a_topic_created_anew_is_read_from_its_beginning_where_loss_is_accepted() -> None:
    cluster = FakeCluster(a=[30])
    told: list[str] = []
    reader = progress(cluster, on_loss=told.append)
    start = reader.next_end(reader.initial(), everything=False)
    cluster.topic_ids["a"], cluster.ends_at["a"] = "another", [4]
    end = reader.next_end(start, everything=False)
    assert ranges(reader, start, end) == [("a-0", 0, 4)]
    assert len(told) == 1


def test_what_is_there_now_is_all_for_a_query_that_ends_by_itself() -> None:
    cluster = FakeCluster(a=[10])
    reader = progress(cluster, starting=Place(everywhere=EARLIEST))
    reader.freeze()
    start = reader.next_end(reader.initial(), everything=False)
    cluster.ends_at["a"] = [99]
    end = reader.next_end(start, everything=False)
    assert end_of(end) == {"a-0": 10}
    assert reader.next_end(end, everything=False) is end
    assert end_of(reader.latest_known() or {}) == {"a-0": 99}, "lag is shown all the same"


def test_available_now_from_latest_on_a_topic_that_grows_all_the_time() -> None:
    """Spark asks for the freeze before it asks for the initial offsets: the initial ones may lie behind the frozen ones."""
    cluster = FakeCluster(a=[100])
    reader = progress(cluster)
    reader.freeze()
    cluster.ends_at["a"] = [105]
    start = reader.initial()
    assert end_of(start) == {"a-0": 105}
    cluster.ends_at["a"] = [110]
    first = reader.next_end(start, everything=False)
    assert first == start
    last = reader.next_end(first, everything=False)
    cluster.ends_at["a"] = [999]
    assert reader.next_end(last, everything=False) is last, "it ends by itself"


@pytest.mark.parametrize("everything", [False, True])
def test_available_now_never_moves_the_checkpoint_back(everything: bool) -> None:
    cluster, told = FakeCluster(a=[100], b=[7]), list[str]()
    reader = progress(cluster, on_loss=told.append)
    reader.freeze()
    start = reader.initial()
    cluster.ends_at |= {"a": [100, 40], "b": [7]}
    checkpoint = stored(
        {TopicPartition("a", 0): 100, TopicPartition("a", 1): 30, TopicPartition("b", 0): 7},
        cluster.topic_ids,
    )
    reader.next_end(start, everything=everything)
    end = offsets_in(reader.next_end(checkpoint, everything=everything))
    assert all(end[each] >= offset for each, offset in offsets_in(checkpoint).items())
    assert not told


def test_available_now_reports_a_topic_that_was_deleted_between_two_runs() -> None:
    cluster = FakeCluster(a=[3], b=[2])
    checkpoint = progress(cluster).initial()
    del cluster.ends_at["b"], cluster.topic_ids["b"]
    again = progress(cluster)
    again.freeze()
    with pytest.raises(Lost, match="b-0: gone"):
        again.next_end(checkpoint, everything=False)
    assert cluster.expected == {TopicPartition("a", 0), TopicPartition("b", 0)}


def test_available_now_reports_a_partition_that_shrank_between_two_runs() -> None:
    cluster = FakeCluster(a=[30])
    checkpoint = progress(cluster).initial()
    cluster.ends_at["a"] = [20]
    again = progress(cluster)
    again.freeze()
    with pytest.raises(Lost, match="ends at 20, but was read up to 30"):
        again.next_end(checkpoint, everything=False)


def test_a_deleted_topic_where_loss_is_accepted_costs_the_others_nothing() -> None:
    cluster, told = FakeCluster(a=[3], b=[2]), list[str]()
    reader = progress(cluster, on_loss=told.append)
    start = reader.next_end(reader.initial(), everything=False)
    del cluster.ends_at["b"], cluster.topic_ids["b"]
    cluster.ends_at["a"] = [5]
    end = reader.next_end(start, everything=False)
    assert end_of(end) == {"a-0": 5}
    assert ranges(reader, start, end) == [("a-0", 3, 5)]
    assert reader.next_end(end, everything=False) is end
    assert len(told) == 1


def test_an_id_that_the_cluster_does_not_tell_for_a_while_is_not_another_id() -> None:
    cluster = FakeCluster(a=[30])
    reader = progress(cluster)
    start = reader.next_end(reader.initial(), everything=False)
    cluster.topic_ids, cluster.ends_at["a"] = {}, [40]
    end = reader.next_end(start, everything=False)
    assert ranges(reader, start, end) == [("a-0", 30, 40)]
    assert end["$topicIds"] == {"a": "id-of-a"}, "still noticed later"
    forgotten = {"a": {"0": 40}}
    assert ranges(reader, start, forgotten) == [("a-0", 30, 40)]


def portions(**more: int) -> Portions:
    known: dict[str, Any] = {
        "max_offsets": None,
        "min_offsets": None,
        "max_delay_ms": 1000,
        "min_partitions": None,
        "max_records_per_partition": None,
    }
    return Portions(**(known | more))


def test_a_limit_is_shared_out_by_backlog() -> None:
    a, b, c = (TopicPartition("t", number) for number in range(3))
    ends = limited({a: 0, b: 0, c: 7}, {a: 900, b: 100, c: 7}, 100)
    assert ends == {a: 90, b: 10, c: 7}
    assert limited({a: 0, b: 0}, {a: 1000, b: 1}, 10) == {a: 9, b: 1}, "nobody starves"


def test_too_little_is_waited_for_but_not_for_ever() -> None:
    cluster, clock = FakeCluster(a=[0]), [0]
    reader = progress(cluster, portions=portions(min_offsets=10), now_ms=lambda: clock[0])
    start = reader.next_end(reader.initial(), everything=False)
    cluster.ends_at["a"] = [4]
    assert reader.next_end(start, everything=False) is start
    clock[0] = 999
    assert reader.next_end(start, everything=False) is start
    clock[0] = 1000
    end = reader.next_end(start, everything=False)
    assert end_of(end) == {"a-0": 4}
    cluster.ends_at["a"] = [15]
    assert end_of(reader.next_end(end, everything=False)) == {"a-0": 15}, "enough is taken at once"


def test_a_trigger_that_wants_everything_gets_it() -> None:
    cluster = FakeCluster(a=[0])
    reader = progress(cluster, portions=portions(max_offsets=5))
    start = reader.next_end(reader.initial(), everything=False)
    cluster.ends_at["a"] = [50]
    assert end_of(reader.next_end(start, everything=False)) == {"a-0": 5}
    assert end_of(reader.next_end(start, everything=True)) == {"a-0": 50}


def test_ranges_are_cut_for_tasks() -> None:
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    whole = [OffsetRange(partition=a, start=0, end=90), OffsetRange(partition=b, start=5, end=15)]

    def sizes(**how: int | None) -> list[int]:
        known: dict[str, int | None] = {"min_partitions": None, "max_records": None}
        pieces = cut(whole, **(known | how))
        assert sum(each.size for each in pieces) == 100
        return [each.size for each in pieces]

    assert sizes() == [90, 10]
    assert sizes(max_records=30) == [30, 30, 30, 10]
    assert sizes(min_partitions=10) == [10] * 10
    assert sizes(min_partitions=2) == [90, 10]
    assert cut([OffsetRange(partition=a, start=9, end=3)], min_partitions=4, max_records=1) == []


def test_small_ranges_share_a_task_unless_the_user_wants_more() -> None:
    whole = [
        OffsetRange(partition=TopicPartition("t", number), start=0, end=size)
        for number, size in enumerate([40, 50, 20, 200, 1])
    ]
    sizes = [[each.size for each in task] for task in shared_out(whole, 100)]
    assert sizes == [[40, 50], [20], [200], [1]]
    assert shared_out([], 100) == []
    few = [each for each in whole if each.size < 100]
    assert portions().tasks_of(few) == [few]
    assert portions(max_records_per_partition=60).tasks_of(few) == [[each] for each in few]
    assert len(portions(min_partitions=4).tasks_of(few)) == 4
