import pytest

from bench.beside_kafka.results import Results, percentile


def measured() -> Results:
    results = Results()
    for ours, theirs in ((10.0, 5.0), (30.0, 10.0), (20.0, 20.0)):
        results.add("run", "headrace", {"MB/s": ours})
        results.add("run", "kafka", {"MB/s": theirs})
    results.add("run", "floor", {"MB/s": 40.0})
    return results


def test_the_ratio_is_that_of_the_medians_and_its_spread_that_of_the_rounds() -> None:
    ratio = measured().ratio("run", "MB/s")
    assert ratio is not None
    assert (ratio.value, ratio.lowest, ratio.highest) == (2.0, 1.0, 3.0)


def test_there_is_no_ratio_without_both_or_over_nought() -> None:
    results = Results()
    results.add("run", "headrace", {"s": 1.0, "cpu": 1.0})
    results.add("run", "kafka", {"cpu": 0.0})
    assert results.ratio("run", "s") is None
    assert results.ratio("run", "cpu") is None
    assert results.ratio("another", "s") is None


def test_the_median_of_a_server() -> None:
    assert measured().median("run", "MB/s", "headrace") == 20.0
    assert measured().median("run", "MB/s", "nobody") is None


def test_figures_come_case_by_case_in_the_order_of_measuring() -> None:
    results = Results()
    results.add("b", "headrace", {"x": 1.0})
    results.add("a", "headrace", {"x": 1.0})
    results.add("b", "kafka", {"y": 1.0})
    assert list(results.cases_and_metrics()) == [("b", "x"), ("b", "y"), ("a", "x")]


@pytest.mark.parametrize(
    ("count", "share", "expected"),
    [(100, 0.5, 50), (100, 0.99, 99), (1000, 0.999, 999), (1, 0.99, 1), (3, 0.5, 2)],
)
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(
    count: int, share: float, expected: int
) -> None:
    assert percentile(list(range(1, count + 1)), share) == expected
