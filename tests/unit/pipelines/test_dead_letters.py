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


def test_the_identity_of_a_letter() -> None:
    def identity(
        offset: int = 17, topic_id: str | None = "one", attempt: bytes | None = None
    ) -> object:
        carried = () if attempt is None else (("headrace.attempt", attempt),)
        headers = letter_headers(
            carried, partition=PLACE, offset=offset, error="bad", topic_id=topic_id
        )
        origin = origin_of(headers)
        assert origin is not None
        return origin.identity

    assert identity() == identity(), "copies, whoever wrote them and why"
    others = [
        identity(18),
        identity(topic_id="two"),
        identity(topic_id=None),
        identity(attempt=b"1"),
    ]
    assert len({identity(), *others}) == 5
