from bench.beside_kafka.warm_up import SLICES_AT_MOST, until_steady


def slices_of(rates: list[float]) -> int:
    following = iter(rates)
    return until_steady(lambda: next(following))


def test_a_server_that_gets_no_faster_is_warm() -> None:
    assert slices_of([100.0, 101.0, 99.0]) == 3


def test_one_that_gets_faster_is_not_even_if_it_stumbles() -> None:
    assert slices_of([10.0, 20.0, 15.0, 40.0, 80.0, 82.0, 81.0]) == 7


def test_patience_ends() -> None:
    assert slices_of([2.0**number for number in range(50)]) == SLICES_AT_MOST
