"""Records as lines, as Kafka's DefaultMessageFormatter prints them."""

from dataclasses import replace

import pytest

from headrace.cli.records.message_formatter import (
    MessageFormatter,
    Record,
    deserializer,
    formatter_name,
    logged,
)
from headrace.cli.shell.command_line import Failure

RECORD = Record(
    topic="t",
    partition=3,
    offset=7,
    leader_epoch=2,
    timestamp_type=1,
    timestamp=1718000000000,
    headers=[("h1", b"v1"), ("h2", None)],
    key=b"k",
    value=b"v\xff",
)
EVERYTHING = {
    f"print.{name}": "true"
    for name in ("timestamp", "partition", "offset", "delivery", "epoch", "headers", "key", "value")
}


def test_the_value_alone_is_the_default() -> None:
    assert MessageFormatter({}).line(RECORD) == b"v\xff\n"


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_record_that_cannot_be_printed_is_named(part: str) -> None:
    properties = {"print.key": "true", f"{part}.deserializer": "LongDeserializer"}
    with pytest.raises(Failure) as failure:
        MessageFormatter(properties).line(RECORD)
    assert failure.value.what == (
        "the record at offset 7 of t-3 cannot be printed:"
        " Size of data received by deserializer is not 8"
    )
    assert failure.value.why == f"it is {1 if part == 'key' else 2}"


def test_every_column_in_kafkas_order() -> None:
    line = MessageFormatter(EVERYTHING).line(RECORD)
    assert line == (
        b"CreateTime:1718000000000\tPartition:3\tOffset:7\tDelivery:NOT_PRESENT\tEpoch:2"
        b"\th1:v1,h2:null\tk\tv\xff\n"
    )


def test_what_is_missing_has_a_word() -> None:
    bare = replace(
        RECORD, leader_epoch=None, timestamp_type=0, timestamp=-1, headers=(), key=None, value=None
    )
    line = MessageFormatter(EVERYTHING | {"null.literal": "NULL"}).line(bare)
    assert line == (
        b"NO_TIMESTAMP\tPartition:3\tOffset:7\tDelivery:NOT_PRESENT\tEpoch:NOT_PRESENT"
        b"\tNO_HEADERS\tNULL\tNULL\n"
    )


def test_append_time_and_own_separators() -> None:
    properties = {
        "print.timestamp": "true",
        "print.headers": "true",
        "key.separator": " | ",
        "headers.separator": ";",
        "line.separator": "$",
    }
    line = MessageFormatter(properties).line(replace(RECORD, timestamp_type=2))
    assert line == b"LogAppendTime:1718000000000 | h1:v1;h2:null | v\xff$"


def test_nothing_to_print_is_no_line() -> None:
    assert MessageFormatter({"print.value": "false"}).line(RECORD) == b""


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("org.apache.kafka.common.serialization.LongDeserializer", bytes(7) + b"\x2a", b"42"),
        ("IntegerDeserializer", b"\xff\xff\xff\xff", b"-1"),
        ("ShortDeserializer", b"\x01\x00", b"256"),
        ("DoubleDeserializer", bytes.fromhex("3ff8000000000000"), b"1.5"),
        ("BooleanDeserializer", b"\x01", b"true"),
        ("StringDeserializer", b"text", b"text"),
        (
            "UUIDDeserializer",
            b"00000000-0000-0000-0000-000000000001",
            b"00000000-0000-0000-0000-000000000001",
        ),
    ],
)
def test_javas_deserializers(name: str, data: bytes, text: bytes) -> None:
    assert deserializer(name)(data) == text
    formatter = MessageFormatter({"value.deserializer": name})
    assert formatter.line(replace(RECORD, value=data)) == text + b"\n"


def test_bytes_that_do_not_fit_a_deserializer() -> None:
    with pytest.raises(Failure, match="Size of data received by deserializer is not 8"):
        deserializer("LongDeserializer")(b"short")


def test_unknown_classes_are_told() -> None:
    with pytest.raises(Failure, match=r"the deserializer com\.me\.Mine is not known"):
        deserializer("com.me.Mine")
    with pytest.raises(Failure, match=r"the formatter com\.me\.Mine is not known"):
        formatter_name("com.me.Mine")
    known = "org.apache.kafka.tools.consumer.NoOpMessageFormatter"
    assert formatter_name(known) == "NoOpMessageFormatter"
    assert formatter_name("kafka.tools.LoggingMessageFormatter") == "LoggingMessageFormatter"


def test_what_the_logging_formatter_logs() -> None:
    assert logged(RECORD) == "CreateTime:1718000000000, key:k, value:v\ufffd"
