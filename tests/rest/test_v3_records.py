"""Producing with version 3: formats, answers in order, a stream both ways, what is refused, batches."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from headrace.client.key_partition import partition_of_key
from tests.support.rest_process import RestProcess, base64_text

Json = Any
JSON = {"Content-Type": "application/json"}


def stored(brokers: str, topic: str, count: int, partition: int = 0) -> list[Any]:
    """The records of a partition, as another client reads them."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "unused"})
    found: list[Any] = []
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while len(found) < count:
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            found.append(message)
    finally:
        consumer.close()
    return found


def text(value: str) -> Json:
    return {"value": {"type": "STRING", "data": value}}


def test_a_record_with_everything(proxy: RestProcess, brokers: str, topic: str) -> None:
    [answer] = proxy.produce(
        topic,
        {
            "partition_id": 0,
            "headers": [{"name": "h", "value": base64_text(b"\x01")}, {"name": "empty"}],
            "key": {"type": "BINARY", "data": base64_text(b"key")},
            "value": {"type": "JSON", "data": {"a": [1, 2.5, None]}},
            "timestamp": "2026-02-05T19:14:42.123Z",
        },
    )
    assert answer == {
        "error_code": 200,
        "cluster_id": proxy.cluster.rpartition("/")[2],
        "topic_name": topic,
        "partition_id": 0,
        "offset": 0,
        "timestamp": "2026-02-05T19:14:42.123Z",
        "key": {"type": "BINARY", "size": 3},
        "value": {"type": "JSON", "size": 18},
    }
    [record] = stored(brokers, topic, 1)
    assert (record.key(), record.value()) == (b"key", b'{"a":[1,2.5,null]}')
    assert record.headers() == [("h", b"\x01"), ("empty", None)]
    assert record.timestamp()[1] == 1770318882123


def test_formats_and_null(proxy: RestProcess, brokers: str, topic: str) -> None:
    answers = proxy.produce(
        topic,
        {"value": {"type": "STRING", "data": "hé"}},
        {"value": {"type": "BINARY", "data": ""}},
        {"key": {"type": "JSON", "data": "k"}, "value": {"type": "JSON", "data": None}},
        {},
        {"key": {"type": "STRING", "data": "only"}},
    )
    assert [each["error_code"] for each in answers] == [200] * 5
    assert answers[3].get("key") is answers[3].get("value") is None
    found = [(each.key(), each.value()) for each in stored(brokers, topic, 5)]
    assert found == [
        (None, "hé".encode()),
        (None, b""),
        (b'"k"', None),
        (None, None),
        (b"only", None),
    ]


def test_the_same_key_goes_where_java_sends_it(proxy: RestProcess) -> None:
    name = f"keys-{time.time_ns()}"
    proxy.create_topic(name, 10)
    keys = [f"key-{number}" for number in range(30)]
    answers = proxy.produce(name, *({"key": {"type": "STRING", "data": key}} for key in keys))
    expected = [partition_of_key(key.encode(), 10) for key in keys]
    assert [each["partition_id"] for each in answers] == expected


def test_answers_are_in_the_order_of_the_records(proxy: RestProcess, topic: str) -> None:
    good, bad = text("x"), {"value": {"type": "BINARY", "data": "*"}}
    answers = proxy.produce(topic, *[good, bad] * 100)
    assert [each["error_code"] for each in answers] == [200, 400] * 100
    assert [each["offset"] for each in answers[::2]] == list(range(100))


@pytest.mark.parametrize(
    ("record", "code", "message"),
    [
        (text("x") | {"partition_id": 7}, 40402, "Partition not found."),
        (text("x") | {"partition_id": -1}, 40402, "Partition not found."),
        ({"value": {"type": "STRING", "data": 1}}, 400, "Bad Request: data=1 is not a string."),
        (text("x") | {"nope": 1}, 400, "unknown field `nope`"),
        ({"value": {"type": "NOPE", "data": 1}}, 400, "Invalid enum value 'NOPE'"),
        ({"value": 5}, 400, "got `int` - at `$.value`"),
        (text("x") | {"timestamp": "yesterday"}, 400, "timestamp"),
        (text("x") | {"timestamp": -5}, 400, "not a time of a record"),
        (text("x") | {"headers": [{"name": "a", "value": "*"}]}, 400, "headers"),
        (
            {"value": {"type": "JSON", "schema_id": 1, "data": 1}},
            400,
            "'type=JSON' cannot be used with 'schema_id'.",
        ),
        (
            {"value": {"type": "AVRO", "data": 1}},
            400,
            "'schema_version=latest' cannot be used with 'serializer'.",
        ),
        (
            {"value": {"subject": "s", "subject_name_strategy": "TOPIC_NAME", "data": 1}},
            400,
            "Only one of 'subject_name_strategy' or 'subject' can be used.",
        ),
        (
            {"value": {"schema_id": 1, "schema_version": 1, "data": 1}},
            400,
            "Only one of 'schema_id', 'schema_version' or 'schema' can be used.",
        ),
    ],
)
def test_a_record_that_is_refused_costs_itself_only(
    proxy: RestProcess, topic: str, record: Json, code: int, message: str
) -> None:
    before, refused, after = proxy.produce(topic, text("x"), record, text("y"))
    assert (before["error_code"], after["error_code"]) == (200, 200)
    assert refused["error_code"] == code, refused
    assert message in refused["message"]


def test_an_unknown_topic(proxy: RestProcess) -> None:
    started = time.monotonic()
    [answer] = proxy.produce("missing-topic", text("x"))
    assert answer == {
        "error_code": 40403,
        "message": "This server does not host this topic-partition.",
    }
    assert time.monotonic() - started < 20


def test_a_topic_that_was_deleted_and_made_again(proxy: RestProcess) -> None:
    name = f"again-{time.time_ns()}"
    for _ in range(2):
        proxy.create_topic(name)
        deadline = time.monotonic() + 60
        # The producer may first have to learn that the topic is another one now.
        while proxy.produce(name, text("x"))[0]["error_code"] != 200:
            assert time.monotonic() < deadline
        assert proxy.v3("DELETE", f"/topics/{name}")[0] == 204


def test_a_record_that_is_too_large_for_kafka(proxy: RestProcess, topic: str) -> None:
    huge, after = proxy.produce(topic, text("x" * 2_000_000), text("y"))
    assert (huge["error_code"], after["error_code"]) == (413, 200)


@pytest.mark.parametrize("tail", [b"{", b'{"value":', b"]", b'{"a" 1}', b'"abc'])
def test_what_is_no_json_ends_the_stream(proxy: RestProcess, topic: str, tail: bytes) -> None:
    body = json.dumps(text("x")).encode() + tail
    status, _, answer = proxy.ask_raw(
        "POST", f"{proxy.cluster}/topics/{topic}/records", body, headers=JSON
    )
    first, last = [json.loads(line) for line in answer.splitlines()]
    assert (status, first["error_code"], last["error_code"]) == (200, 200, 400)
    assert last["message"].startswith("Bad Request: Error processing message:")


def test_an_empty_body(proxy: RestProcess, topic: str) -> None:
    status, answer = proxy.ask("POST", f"{proxy.cluster}/topics/{topic}/records", headers=JSON)
    assert (status, answer["error_code"]) == (422, 42206)


class Stream:
    """A request whose body is written while its answer is read."""

    def __init__(self, proxy: RestProcess, topic: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", proxy.port), timeout=60)
        self.socket.sendall(
            f"POST {proxy.cluster}/topics/{topic}/records HTTP/1.1\r\nHost: localhost\r\n"
            "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        self._answer = http.client.HTTPResponse(self.socket)
        self.has_begun = False

    def send(self, data: bytes) -> None:
        self.socket.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def answers(self) -> Iterator[Json]:
        if not self.has_begun:
            self._answer.begin()
            self.has_begun = True
        while line := self._answer.readline():
            yield json.loads(line)

    def close(self) -> None:
        self._answer.close()
        self.socket.close()


def test_a_stream_is_answered_while_it_comes(proxy: RestProcess, topic: str) -> None:
    stream = Stream(proxy, topic)
    answers = stream.answers()
    for number in range(5):
        stream.send(json.dumps(text(f"{number}")).encode())
        assert next(answers)["offset"] == number
    halves = json.dumps(text("cut in two")).encode()
    stream.send(halves[:20])
    stream.send(halves[20:] + b"\n" + json.dumps(text("z")).encode())
    assert [next(answers)["offset"] for _ in range(2)] == [5, 6]
    stream.end()
    assert list(answers) == []
    stream.close()


def test_a_client_that_sends_everything_before_it_reads(proxy: RestProcess, topic: str) -> None:
    count, block = 20_000, 1000
    stream = Stream(proxy, topic)
    for start in range(0, count, block):
        stream.send(
            b"".join(json.dumps(text(f"{n}")).encode() for n in range(start, start + block))
        )
    stream.end()
    offsets = [each["offset"] for each in stream.answers()]
    assert offsets == list(range(count))
    stream.close()


def test_a_client_that_goes_away_costs_itself_only(
    proxy: RestProcess, brokers: str, topic: str
) -> None:
    stream = Stream(proxy, topic)
    stream.send(json.dumps(text("sent")).encode() + b'{"value":')
    assert next(stream.answers())["offset"] == 0
    stream.close()
    assert proxy.produce(topic, text("after"))[0]["offset"] == 1
    assert [each.value() for each in stored(brokers, topic, 2)] == [b"sent", b"after"]


def test_a_broken_chunk_in_the_first_segment_leaks_nothing(proxy: RestProcess, topic: str) -> None:
    record = b'{"value":{"type":"STRING","data":"a"}}'
    head = (
        f"POST {proxy.cluster}/topics/{topic}/records HTTP/1.1\r\nHost: localhost\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as connection:
        connection.sendall(head + b"%x\r\n%s\r\nZZ\r\n" % (len(record), record))
        while connection.recv(65536):
            pass
    for _ in range(100):
        _, _, page = proxy.ask_raw("GET", "/metrics")
        if b"\nkafka_rest_produce_api_metrics_streams 0\n" in page:
            return
        time.sleep(0.05)
    raise AssertionError("a stream is still counted")


def test_a_batch(proxy: RestProcess, topic: str) -> None:
    entries = [
        {"id": "1", **text("x")},
        {"id": "b_2-c", "value": {"type": "BINARY", "data": "*"}},
        {"id": "3", "key": {"type": "STRING", "data": "k"}},
    ]
    status, answer = proxy.v3("POST", f"/topics/{topic}/records:batch", {"entries": entries})
    assert status == 207
    assert [each["id"] for each in answer["successes"]] == ["1", "3"]
    assert sorted(each["offset"] for each in answer["successes"]) == [0, 1]
    assert answer["failures"] == [
        {
            "id": "b_2-c",
            "error_code": 400,
            "message": 'Bad Request: data="*" is not a valid base64 string.',
        }
    ]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "Empty batch."),
        (None, "Empty batch."),
        ([{"id": str(n)} for n in range(11)], "Too many entries in batch."),
        ([{"id": "a"}, {"id": "a"}], "Batch entry IDs are not distinct."),
        ([{"id": 1}], "Batch entry identifier is not a valid string."),
        ([{"id": "a b"}], "Batch entry identifier is not a valid string."),
        ([{}], "Batch entry identifier is not a valid string."),
    ],
)
def test_a_batch_that_is_none(proxy: RestProcess, topic: str, entries: Json, message: str) -> None:
    status, answer = proxy.v3("POST", f"/topics/{topic}/records:batch", {"entries": entries})
    assert (status, answer) == (422, {"error_code": 42208, "message": message})
