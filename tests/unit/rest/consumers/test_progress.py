"""Records that no client has got, and offsets behind those that one has."""

from headrace.ids import TopicPartition
from headrace.rest.consumers.progress import Progress, ReadRecord

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def record(place: TopicPartition, offset: int) -> ReadRecord:
    return ReadRecord(place.topic, place.partition, offset, b"k", b"value")


def undelivered(progress: Progress) -> list[int]:
    found = []
    while (each := progress.next_undelivered()) is not None:
        found.append(each.offset)
    return found


def test_what_was_put_back_comes_first_and_in_order() -> None:
    progress = Progress()
    progress.keep(record(A, 5))
    progress.put_back([record(A, 3), record(A, 4)])
    assert progress.undelivered_bytes == 18
    assert undelivered(progress) == [3, 4, 5]


def test_the_offset_behind_the_last_delivered_counts() -> None:
    progress = Progress()
    progress.deliver([record(A, 3), record(B, 9), record(A, 4)])
    assert progress.delivered == {A: 5, B: 10}
    progress.forget([A])
    assert progress.delivered == {B: 10}


def test_partitions_that_are_read_no_more_are_forgotten() -> None:
    progress = Progress()
    progress.deliver([record(A, 3), record(B, 3)])
    progress.keep(record(A, 4))
    progress.keep(record(B, 4))
    progress.keep_only({A: 5, B: None}.get)
    assert progress.delivered == {A: 4}
    assert undelivered(progress) == [4]


def test_a_partition_that_went_and_came_back_is_forgotten_too() -> None:
    progress = Progress()
    progress.deliver([record(A, 7)])
    progress.keep_only({A: 3}.get)  # read again, from an offset that was committed before
    assert progress.delivered == {}
