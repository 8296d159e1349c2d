"""Options: the connector's names and meanings, and a good answer to a wrong one."""

import pytest

from headrace.pipelines.options.known_options import EARLIEST, LATEST, OptionError
from headrace.pipelines.options.source_options import (
    OnDecodeError,
    SourceOptions,
    TopicChoice,
    parse_source_options,
)

NEEDED = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}


def parse(*, streaming: bool = True, **more: str) -> SourceOptions:
    given = NEEDED | {name.replace("__", "."): value for name, value in more.items()}
    return parse_source_options(
        {name.lower(): value for name, value in given.items()}, streaming=streaming
    )


def refusal(*, streaming: bool = True, **more: str) -> str:
    with pytest.raises(OptionError) as refused:
        parse(streaming=streaming, **more)
    return str(refused.value)


def test_the_defaults_are_the_connectors() -> None:
    stream, batch = parse(), parse(streaming=False)
    assert stream.starting.everywhere == LATEST
    assert batch.starting.everywhere == EARLIEST
    assert batch.ending.everywhere == LATEST
    assert stream.fail_on_data_loss
    assert stream.portions.max_delay_ms == 15 * 60_000
    assert stream.poll_timeout_ms == 120_000
    assert not stream.opening.include_headers
    assert not stream.read_committed
    assert stream.opening.on_decode_error is OnDecodeError.FAIL


def test_what_to_read() -> None:
    assert parse(subscribe=" a , b").choice == TopicChoice(names=("a", "b"))
    given = {"kafka.bootstrap.servers": "x", "assign": '{"t":[1,0]}'}
    assert parse_source_options(given, streaming=True).choice.partitions == {"t": (0, 1)}
    given = {"kafka.bootstrap.servers": "x", "subscribepattern": "or.*"}
    choice = parse_source_options(given, streaming=True).choice
    assert choice.topics_among(["orders", "xor", "or"]) == ["or", "orders"]


def test_where_to_start_and_end() -> None:
    offsets = parse(startingOffsets='{"orders":{"0":23,"1":-2}}').starting.offsets
    assert offsets == {"orders": {0: 23, 1: -2}}
    both = parse(startingOffsets="earliest", startingTimestamp="5", startingOffsetsByTimestamp="{}")
    assert both.starting.timestamp_ms == 5
    timed = parse(startingOffsets="earliest", startingOffsetsByTimestamp='{"orders":{"0":7}}')
    assert timed.starting.timestamps == {"orders": {0: 7}}
    assert not timed.starting.unmatched_is_latest
    assert parse(
        startingTimestamp="5", startingOffsetsByTimestampStrategy="latest"
    ).starting.unmatched_is_latest
    assert parse(streaming=False, endingTimestamp="5").ending.unmatched_is_latest
    assert parse(startingOffsets="committed", commitGroup="g").starting.committed


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"subscribPattern": "a"}, "did you mean 'subscribePattern'?"),
        ({"startingOffset": "earliest"}, "did you mean 'startingOffsets'?"),
        ({"kafka.bootstrap.server": "x"}, "did you mean 'kafka.bootstrap.servers'?"),
        ({"subscribePattern": "a"}, "subscribe and subscribePattern are given"),
        ({"startingOffsets": "newest"}, "startingOffsets=newest is not JSON"),
        ({"startingOffsets": '{"orders":{"0":-3}}'}, "-3 for orders-0 is no offset"),
        ({"startingOffsets": '{"orders":{"0":1.5}}'}, "1.5 is not a whole number"),
        ({"startingOffsets": "committed"}, "needs commitGroup"),
        ({"endingOffsets": "latest"}, "endingOffsets does not apply to a streaming query"),
        ({"maxOffsetsPerTrigger": "0"}, "not a whole number of at least 1"),
        ({"maxOffsetsPerTrigger": "2", "minOffsetsPerTrigger": "3"}, "is more than"),
        ({"maxTriggerDelay": "soon"}, "not a duration"),
        ({"failOnDataLoss": "perhaps"}, "neither true nor false"),
        ({"kafka.auto.offset.reset": "earliest"}, "use the option startingOffsets instead"),
        ({"kafka.enable.auto.commit": "true"}, "commitGroup"),
        ({"kafka.sasl.mechanism": "PLAIN"}, "only PLAINTEXT"),
        ({"kafka.security.protocol": "SSL"}, "only PLAINTEXT"),
        ({"valueFormat": "jsn"}, "did you mean 'json'?"),
        ({"valueSchema": "a INT"}, "valueSchema needs valueFormat to be one of json, avro"),
        ({"onDecodeError": "deadLetterTopic"}, "needs the option deadLetterTopic"),
        ({"deadLetterTopic": "dead"}, "needs onDecodeError=deadLetterTopic"),
        ({"kafka.isolation.level": "serializable"}, "read_committed"),
    ],
)
def test_a_wrong_option_is_told(more: dict[str, str], words: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse_source_options({**NEEDED, **more}, streaming=True)
    assert words in str(refused.value)


def test_what_makes_no_sense_in_a_batch() -> None:
    assert "reads nothing" in refusal(streaming=False, startingOffsets="latest")
    assert "does not apply to a batch query" in refusal(streaming=False, maxOffsetsPerTrigger="5")
    assert "-2 for orders-0" in refusal(streaming=False, endingOffsets='{"orders":{"0":-2}}')


def test_a_setting_that_only_java_has_does_no_harm() -> None:
    assert parse(kafka__metrics__num__samples="3").bootstrap_servers == "localhost:9092"


def test_bootstrap_servers_must_be_given() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        parse_source_options({"subscribe": "a"}, streaming=True)
