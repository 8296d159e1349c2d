"""When a read is complete."""

from headrace.rest.consumers.read_plan import ReadPlan


def plan(min_bytes: int = 0, max_bytes: int = 100) -> ReadPlan:
    return ReadPlan(min_bytes=min_bytes, max_bytes=max_bytes, deadline=10.0)


def test_enough_is_more_than_the_minimum() -> None:
    read = plan(min_bytes=20)
    read.add(20)
    assert not read.has_enough
    read.add(1)
    assert read.has_enough


def test_without_a_minimum_the_time_decides() -> None:
    read = plan(min_bytes=-1)
    read.add(50)
    assert not read.has_enough
    assert not read.is_over(9.9)
    assert read.is_over(10.0)
    assert (read.remaining_s(9.0), read.remaining_s(11.0)) == (1.0, 0.0)


def test_a_record_must_fit_unless_it_is_the_first() -> None:
    read = plan()
    assert read.fits(1000)
    read.add(60)
    assert read.fits(39)
    assert not read.fits(40)


def test_a_first_record_that_is_too_large_is_enough() -> None:
    read = plan(min_bytes=-1)
    read.add(1000)
    assert read.has_enough
