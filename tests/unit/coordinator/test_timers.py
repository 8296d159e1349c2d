"""Deadlines by key."""

from headrace.coordinator.timers import Deadlines


def drain(deadlines: Deadlines, now_ms: int) -> list[object]:
    due: list[object] = []
    while (key := deadlines.pop_due(now_ms)) is not None:
        due.append(key)
    return due


def test_keys_fall_due_in_order_of_their_deadlines() -> None:
    deadlines = Deadlines()
    deadlines.set("late", 30)
    deadlines.set("early", 10)
    deadlines.set("middle", 20)
    assert deadlines.next_ms() == 10
    assert drain(deadlines, 20) == ["early", "middle"]
    assert drain(deadlines, 29) == []
    assert drain(deadlines, 30) == ["late"]
    assert deadlines.next_ms() is None


def test_a_deadline_can_be_moved_out_in_and_cancelled() -> None:
    deadlines = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("a", 50)
    assert deadlines.next_ms() == 50
    deadlines.set("a", 5)
    assert deadlines.next_ms() == 5
    deadlines.cancel("a")
    deadlines.cancel("never set")
    assert drain(deadlines, 100) == []
    deadlines.set("a", 200)
    assert drain(deadlines, 200) == ["a"]


def test_cancelling_while_draining_is_seen() -> None:
    deadlines = Deadlines()
    deadlines.set("a", 10)
    deadlines.set("b", 10)
    assert deadlines.pop_due(10) == "a"
    deadlines.cancel("b")
    assert deadlines.pop_due(10) is None


def test_many_heartbeats_do_not_grow_the_heap() -> None:
    deadlines = Deadlines()
    for now_ms in range(10_000):
        deadlines.set("member", now_ms + 45_000)
    assert len(deadlines) == 1
    assert len(deadlines._heap) == 1
