"""Dead letters tell where they come from, and how often a record was tried."""

from headrace.ids import TopicPartition
from headrace.pipelines.dead_letters import letter_headers, origin_of, redriven_headers

PLACE = TopicPartition("orders", 3)


def test_a_letter_names_its_origin_and_keeps_the_records_headers() -> None:
    headers = letter_headers((("trace", b"t"),), partition=PLACE, offset=17, error="not JSON")
    assert headers[0] == ("trace", b"t")
    origin = origin_of(headers)
    assert origin is not None
    assert (origin.partition, origin.offset, origin.attempt, origin.error) == (
        PLACE,
        17,
        1,
        "not JSON",
    )


def test_attempts_are_counted_across_redrives() -> None:
    first = letter_headers((("trace", b"t"),), partition=PLACE, offset=17, error="bad")
    back = redriven_headers(first)
    assert back == (("trace", b"t"), ("headrace.attempt", b"1"))
    second = origin_of(letter_headers(back, partition=PLACE, offset=30, error="bad"))
    assert second is not None
    assert (second.attempt, second.offset) == (2, 30)


def test_a_record_that_is_no_letter() -> None:
    assert origin_of((("trace", b"t"),)) is None
