from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.beside_kafka import catalogue
from bench.beside_kafka.rounds import Comparison, Notebook, Size
from bench.beside_kafka.servers import Node


@dataclass
class Written:
    """Runs that measure nothing and note in which order they were asked."""

    ABOUT: str = "order"
    fails_on: str = ""
    asked: list[str] = field(default_factory=list)

    def measure_life(self, server: str, directory: Path, notebook: Notebook, size: Size) -> None:
        assert directory.is_dir()
        self.asked.append(server)
        if server == self.fails_on:
            raise TimeoutError("it never came")
        notebook.note("order", {"place": len(self.asked) * size.share})


def compare(runs: Written, said: list[str], rounds: int) -> Comparison:
    comparison = Comparison(
        families={},
        apart={"order": runs},
        rounds=rounds,
        size=Size(),
        servers=("kafka", "headrace", "floor"),
        say=said.append,
    )
    comparison.run()
    return comparison


def test_servers_take_turns_and_the_first_changes() -> None:
    runs, said = Written(), list[str]()
    comparison = compare(runs, said, rounds=3)
    assert runs.asked == ["kafka", "headrace", "headrace", "kafka", "kafka", "headrace"]
    assert comparison.results.figures["order", "place"] == {
        "kafka": [1.0, 4.0, 5.0],
        "headrace": [2.0, 3.0, 6.0],
    }
    assert sum("round" in line for line in said) == 3


def test_a_run_that_fails_is_told_and_the_others_go_on() -> None:
    runs, said = Written(fails_on="kafka"), list[str]()
    comparison = compare(runs, said, rounds=2)
    assert runs.asked == ["kafka", "headrace", "headrace", "kafka"]
    assert comparison.failures == ["kafka, order: TimeoutError('it never came')"] * 2
    assert list(comparison.results.figures["order", "place"]) == ["headrace"]
    assert sum("FAILED" in line for line in said) == 2


def test_a_comparison_holds_what_was_named() -> None:
    chosen = catalogue.comparison(["produce", "life"], rounds=1, size=Size(), servers=("kafka",))
    assert list(chosen.families) == ["produce"]
    assert list(chosen.apart) == ["life"]
    assert set(catalogue.about()) == {*catalogue.FAMILIES, *catalogue.APART}


def test_sizes_shrink_but_never_to_nothing() -> None:
    small = Size(share=0.001)
    assert small.count(10_000) == 10
    assert small.count(10) == 1
    assert small.seconds(2.0) == 0.2


class Idle(Node):
    """A broker without a process."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def is_running(self) -> bool:
        return True

    @property
    def pids(self) -> list[int]:
        return []


class Noted:
    """Three runs, two for the floor; the one that fails is left out from then on."""

    ABOUT = "order"
    WITH_FLOOR = True

    def __init__(self, fails_on: str = "") -> None:
        self.asked: list[str] = []
        self._fails_on = fails_on

    def measure(self, broker: Node, notebook: Notebook, size: Size) -> Iterator[None]:
        for run in range(2 if broker.name == "floor" else 3):
            self.asked.append(f"{run} {broker.name}")
            if broker.name == self._fails_on:
                raise TimeoutError("it never came")
            yield


def test_each_run_is_made_with_one_broker_after_the_other() -> None:
    runs, said = Noted(), list[str]()
    comparison = compare(Written(), said, rounds=0)
    comparison._family("order", runs, [Idle("kafka"), Idle("headrace"), Idle("floor")])
    assert runs.asked == [
        *("0 kafka", "0 headrace", "0 floor"),
        *("1 floor", "1 headrace", "1 kafka"),
        *("2 kafka", "2 headrace"),
    ]


def test_a_broker_that_fails_in_a_family_is_told_and_the_others_go_on() -> None:
    runs, said = Noted(fails_on="kafka"), list[str]()
    comparison = compare(Written(), said, rounds=0)
    comparison._family("order", runs, [Idle("kafka"), Idle("headrace")])
    assert runs.asked == ["0 kafka", "0 headrace", "1 headrace", "2 headrace"]
    assert comparison.failures == ["kafka, order: TimeoutError('it never came')"]
