"""Placement in cases worked out by hand from the rule that Kafka used with ZooKeeper."""

from headrace.controller.placement import place


def test_followers_move_away_by_one_with_each_round() -> None:
    racks: dict[int, str | None] = dict.fromkeys(range(5))
    placed = place(racks, partitions=10, replication_factor=3)
    assert placed == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_start_and_shift_are_given() -> None:
    racks: dict[int, str | None] = dict.fromkeys(range(3))
    placed = place(racks, partitions=3, replication_factor=2, start_index=1, start_shift=1)
    assert placed == [(1, 0), (2, 1), (0, 2)]


def test_racks_are_taken_in_turn() -> None:
    # The order of the brokers is 0 (a), 3 (b), 1 (c), 5 (a), 4 (b), 2 (c).
    racks: dict[int, str | None] = {0: "a", 1: "c", 2: "c", 3: "b", 4: "b", 5: "a"}
    placed = place(racks, partitions=7, replication_factor=3)
    assert placed == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


def test_one_broker_without_rack_makes_all_equal() -> None:
    racks: dict[int, str | None] = {0: "a", 1: "a", 2: None}
    assert place(racks, partitions=2, replication_factor=2) == [(0, 1), (1, 2)]


def test_a_single_broker_takes_everything() -> None:
    assert place({7: None}, partitions=3, replication_factor=1) == [(7,), (7,), (7,)]
