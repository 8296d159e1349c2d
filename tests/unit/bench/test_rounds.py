from dataclasses import dataclass, field
from pathlib import Path

from bench.beside_kafka import catalogue
from bench.beside_kafka.rounds import Comparison, Notebook, Size


@dataclass
class Written:
    """Runs that measure nothing and note in which order they were asked."""

    ABOUT: str = "order"
    fails_on: str = ""
    asked: list[str] = field(default_factory=list)
    filled: list[int] = field(default_factory=list)

    def fill_memory(self) -> int:
        self.filled.append(len(self.asked))
        return 5_000_000_000

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
        fill_memory=runs.fill_memory,
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
    assert sum("round" in line for line in said) == 9
    assert runs.filled == [0, 1, 2, 3, 4, 5]  # before each
    assert sum("memory filled: 5.0 GB" in line for line in said) == 6


def test_a_run_that_fails_is_told_and_the_others_go_on() -> None:
    runs, said = Written(fails_on="kafka"), list[str]()
    comparison = compare(runs, said, rounds=2)
    assert runs.asked == ["kafka", "headrace", "headrace", "kafka"]
    assert comparison.failures == ["kafka, order: TimeoutError('it never came')"] * 2
    assert list(comparison.results.figures["order", "place"]) == ["headrace"]
    assert sum("FAILED" in line for line in said) == 2


def test_a_comparison_holds_what_was_named() -> None:
    chosen = catalogue.comparison(
        ["produce", "life"], rounds=1, size=Size(), servers=("kafka",), fill_memory=lambda: 0
    )
    assert list(chosen.families) == ["produce"]
    assert list(chosen.apart) == ["life"]
    assert set(catalogue.about()) == {*catalogue.FAMILIES, *catalogue.APART}


def test_sizes_shrink_but_never_to_nothing() -> None:
    small = Size(share=0.001)
    assert small.count(10_000) == 10
    assert small.count(10) == 1
    assert small.seconds(2.0) == 0.2
