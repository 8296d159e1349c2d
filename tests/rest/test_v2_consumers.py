"""Consumers of version 2: instances, subscriptions, assignments, positions, commits, limits of a read."""

import threading
import time
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.rest_process import RestConsumer, RestProcess, base64_text, places

Json = Any


def fill(proxy: RestProcess, topic: str, *values: str, partition: int = 0) -> None:
    answers = proxy.produce(
        topic,
        *(
            {"partition_id": partition, "value": {"type": "STRING", "data": each}}
            for each in values
        ),
    )
    assert [each["error_code"] for each in answers] == [200] * len(values)


def values(records: list[Json]) -> list[str]:
    return [each["value"] for each in records]


def encoded(*texts: str) -> list[str]:
    return [base64_text(each.encode()) for each in texts]


def wait_for_assignment(consumer: RestConsumer, count: int) -> None:
    for _ in range(100):
        consumer.read(timeout_ms=100)
        if len(consumer.do("GET", "/assignments", status=200)["partitions"]) == count:
            return
    raise AssertionError("no assignment")


def test_subscribe_read_commit_and_go_on(proxy: RestProcess, topic: str, group: str) -> None:
    fill(proxy, topic, "a", "b", "c")
    consumer = proxy.consumer(group, auto_commit_enable="false")
    assert consumer.do("GET", "/subscription", status=200) == {"topics": []}
    consumer.subscribe(topic)
    assert consumer.do("GET", "/subscription", status=200) == {"topics": [topic]}
    records = consumer.records(3)
    assert records[0] == {
        "topic": topic,
        "key": None,
        "value": base64_text(b"a"),
        "partition": 0,
        "offset": 0,
    }
    assert consumer.do("GET", "/assignments", status=200) == {"partitions": places((topic, 0))}
    wanted = {"partitions": places((topic, 0))}
    assert consumer.do("GET", "/offsets", wanted, status=200) == {"offsets": []}
    assert consumer.do("POST", "/offsets", status=200) == []
    committed = {"topic": topic, "partition": 0, "offset": 3, "metadata": ""}
    assert consumer.do("GET", "/offsets", wanted, status=200) == {"offsets": [committed]}
    consumer.delete()
    fill(proxy, topic, "d")
    again = proxy.consumer(group)
    again.subscribe(topic)
    assert values(again.records(1)) == encoded("d")
    again.delete()
    assert again.ask("GET", "/subscription")[1]["error_code"] == 40403


def test_offsets_that_are_committed_are_those_of_processed_records(
    proxy: RestProcess, topic: str, group: str
) -> None:
    fill(proxy, topic, "a", "b", "c")
    consumer = proxy.consumer(group, auto_commit_enable="false")
    consumer.assign((topic, 0))
    offset = {"topic": topic, "partition": 0, "offset": 0, "metadata": "mine"}
    consumer.do("POST", "/offsets?async=true", {"offsets": [offset]}, status=200)
    wanted = {"partitions": places((topic, 0))}
    for _ in range(100):
        found = consumer.do("GET", "/offsets", wanted, status=200)["offsets"]
        if found:
            break
        time.sleep(0.05)
    assert found == [{**offset, "offset": 1}]
    consumer.delete()
    again = proxy.consumer(group)
    again.assign((topic, 0))
    assert values(again.records(2)) == encoded("b", "c")
    again.delete()


def test_metadata_of_a_commit(proxy: RestProcess, topic: str, group: str) -> None:
    consumer = proxy.consumer(group)
    consumer.assign((topic, 0))
    for metadata in ("", "m", "é" * 4095):
        offset = {"topic": topic, "partition": 0, "offset": 6, "metadata": metadata}
        assert consumer.do("POST", "/offsets", {"offsets": [offset]}, status=200) == []
        found = consumer.do("GET", "/offsets", {"partitions": places((topic, 0))}, status=200)
        assert found == {"offsets": [{**offset, "offset": 7}]}
    for metadata, status, code in (("m" * 4096, 400, 40002), ("nul\0tail", 422, 422)):
        offset = {"topic": topic, "partition": 0, "offset": 8, "metadata": metadata}
        found_status, answer = consumer.ask("POST", "/offsets", {"offsets": [offset]})
        assert (found_status, answer["error_code"]) == (status, code), answer
    consumer.delete()


def test_what_a_client_has_got_is_committed_when_it_reads_on_or_ends(
    proxy: RestProcess, topic: str, group: str
) -> None:
    fill(proxy, topic, "a", "b")
    consumer = proxy.consumer(group)  # commits by itself
    consumer.subscribe(topic)
    consumer.records(2)
    consumer.delete()
    fill(proxy, topic, "c")
    again = proxy.consumer(group)
    again.subscribe(topic)
    assert values(again.records(1)) == encoded("c")
    again.delete()


def test_without_commits_the_next_one_begins_anew(
    proxy: RestProcess, topic: str, group: str
) -> None:
    fill(proxy, topic, "a")
    for _ in range(2):
        consumer = proxy.consumer(group, auto_commit_enable=False)
        consumer.subscribe(topic)
        assert values(consumer.records(1)) == encoded("a")
        consumer.delete()


def test_two_instances_share_a_topic(proxy: RestProcess, group: str) -> None:
    name = f"shared-{time.time_ns()}"
    proxy.create_topic(name, 2)
    first, second = proxy.consumer(group), proxy.consumer(group)
    first.subscribe(name)
    wait_for_assignment(first, 2)
    second.subscribe(name)
    wait_for_assignment(second, 1)
    wait_for_assignment(first, 1)
    fill(proxy, name, "p0", partition=0)
    fill(proxy, name, "p1", partition=1)
    found = values(first.records(1)) + values(second.records(1))
    assert sorted(found) == sorted(encoded("p0", "p1"))
    first.delete()
    wait_for_assignment(second, 2)
    second.delete()


def test_a_pattern(proxy: RestProcess, group: str) -> None:
    prefix = f"pat-{time.time_ns()}"
    names = [f"{prefix}-{letter}" for letter in "ab"]
    for name in names:
        proxy.create_topic(name)
        fill(proxy, name, name)
    consumer = proxy.consumer(group)
    consumer.do("POST", "/subscription", {"topic_pattern": f"{prefix}-[a-z]"})
    assert {each["topic"] for each in consumer.records(2)} == set(names)
    assert consumer.do("GET", "/subscription", status=200) == {"topics": names}
    consumer.delete()


def test_subscriptions_and_assignments_exclude_each_other(
    proxy: RestProcess, topic: str, group: str
) -> None:
    consumer = proxy.consumer(group)
    consumer.subscribe(topic)
    exclusive = (
        "Illegal state: Subscription to topics, partitions and pattern are mutually exclusive"
    )
    for path, body in (
        ("/assignments", {"partitions": places((topic, 0))}),
        ("/subscription", {"topic_pattern": "x.*"}),
    ):
        status, answer = consumer.ask("POST", path, body)
        assert (status, answer) == (409, {"error_code": 40903, "message": exclusive})
    consumer.do("DELETE", "/subscription")
    consumer.assign((topic, 0))
    status, answer = consumer.ask("POST", "/subscription", {"topics": [topic]})
    assert (status, answer["error_code"]) == (409, 40903)
    consumer.delete()


def test_positions(proxy: RestProcess, topic: str, group: str) -> None:
    fill(proxy, topic, "a", "b", "c")
    consumer = proxy.consumer(group)
    consumer.assign((topic, 0))
    consumer.records(3)
    offset = {"topic": topic, "partition": 0, "offset": 1}
    consumer.do("POST", "/positions", {"offsets": [offset]})
    assert values(consumer.records(2)) == encoded("b", "c")
    consumer.do("POST", "/positions/beginning", {"partitions": places((topic, 0))})
    assert values(consumer.records(3)) == encoded("a", "b", "c")
    consumer.do("POST", "/positions/end", {"partitions": places((topic, 0))})
    assert consumer.nothing_more()
    fill(proxy, topic, "d")
    assert values(consumer.records(1)) == encoded("d")
    late = {"topic": topic, "partition": 0, "timestamp": "2100-01-01T00:00:00Z"}
    early = {**late, "timestamp": "2000-01-01T00:00:00Z"}
    consumer.do("POST", "/positions", {"timestamps": [early]})
    assert values(consumer.records(4)) == encoded("a", "b", "c", "d")
    consumer.do("POST", "/positions", {"timestamps": [late]})
    assert consumer.nothing_more()
    status, answer = consumer.ask("POST", "/positions", {"offsets": [{**offset, "partition": 5}]})
    assert (status, answer["error_code"]) == (409, 40903)
    assert answer["message"] == f"Illegal state: No current assignment for partition {topic}-5"
    consumer.delete()


def test_a_read_takes_no_more_bytes_than_it_may(proxy: RestProcess, topic: str, group: str) -> None:
    fill(proxy, topic, *(letter * 100 for letter in "abcde"), "z" * 1000)
    consumer = proxy.consumer(group)
    consumer.assign((topic, 0))
    taken: list[int] = []
    while sum(taken) < 6:
        status, records = consumer.read(max_bytes=250)
        assert status == 200
        taken.append(len(records))
    # A record that is larger than the limit comes alone, so that it does not stop the consumer.
    assert [each for each in taken if each] == [2, 2, 1, 1]
    consumer.delete()


def test_a_read_waits_for_enough_bytes_or_its_time(
    proxy: RestProcess, topic: str, group: str
) -> None:
    fill(proxy, topic, "a")
    consumer = proxy.consumer(group, fetch_min_bytes=10_000)
    consumer.assign((topic, 0))
    writer = threading.Timer(1.0, fill, (proxy, topic, "b" * 20_000))
    writer.start()
    status, records = consumer.read(timeout_ms=10_000)
    writer.join()
    assert (status, len(records)) == (200, 2)
    patient = proxy.consumer(group, fetch_min_bytes=-1)
    patient.assign((topic, 0))
    started = time.monotonic()
    assert len(patient.read(timeout_ms=1000)[1]) == 2
    assert time.monotonic() - started >= 1.0
    consumer.delete()
    patient.delete()


def test_a_commit_does_not_wait_for_a_read(proxy: RestProcess, topic: str, group: str) -> None:
    consumer = proxy.consumer(group)
    consumer.assign((topic, 0))
    read: list[tuple[int, Json]] = []
    reader = threading.Thread(target=lambda: read.append(consumer.read(timeout_ms=8000)))
    reader.start()
    started = time.monotonic()
    offset = {"topic": topic, "partition": 0, "offset": 0}
    consumer.do("POST", "/offsets", {"offsets": [offset]}, status=200)
    assert reader.is_alive() or time.monotonic() - started > 8
    fill(proxy, topic, "a")
    reader.join()
    assert values(read[0][1]) == encoded("a")
    consumer.delete()


def test_a_format_that_is_not_that_of_the_instance(
    proxy: RestProcess, topic: str, group: str
) -> None:
    consumer = proxy.consumer(group, format="json")
    consumer.assign((topic, 0))
    path = f"{consumer.path}/records?timeout=100"
    for accept in ("*/*", "application/vnd.kafka.v2+json", "application/vnd.kafka.avro.v2+json"):
        status, answer = proxy.ask("GET", path, headers={"Accept": accept})
        assert (status, answer["error_code"]) == (406, 40601)
    assert proxy.ask("GET", path, headers={"Accept": "application/json"}) == (200, [])
    consumer.delete()


def test_json_and_a_record_that_is_none(proxy: RestProcess, topic: str, group: str) -> None:
    proxy.produce_v2(topic, "json", {"records": [{"key": 1, "value": {"a": [1.5, "é"]}}]})
    fill(proxy, topic, "not json")
    fill(proxy, topic, '"after"')
    consumer = proxy.consumer(group, format="json")
    consumer.assign((topic, 0))
    [record] = consumer.records(1)
    assert (record["key"], record["value"]) == (1, {"a": [1.5, "é"]})
    for _ in range(2):
        status, answer = consumer.read()
        assert (status, answer["error_code"]) == (500, 50002)
        assert f"{topic}-0 at offset 1" in answer["message"]
    consumer.do("POST", "/positions", {"offsets": [{"topic": topic, "partition": 0, "offset": 2}]})
    assert values(consumer.records(1)) == ["after"]
    consumer.delete()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"format": "nope"}, 422, 422),
        ({"format": "string"}, 422, 422),
        ({"auto.offset.reset": "somewhere"}, 422, 42204),
        ({"auto.commit.enable": "maybe"}, 422, 42204),
        ({"fetch.min.bytes": -2}, 422, 40001),
        ({"fetch.min.bytes": 10_000_001}, 422, 40001),
        ({"fetch.min.bytes": "x"}, 422, 42204),
        ({"consumer.request.timeout.ms": -1}, 422, 40001),
        ({"nope": 1}, 422, 422),
        ({"name": ""}, 422, 42204),
        ([], 400, 400),
    ],
)
def test_instances_that_cannot_be(
    proxy: RestProcess, group: str, body: Json, status: int, code: int
) -> None:
    found, answer = proxy.v2("POST", f"/consumers/{group}", body)
    assert (found, answer["error_code"]) == (status, code), answer


def test_names_of_instances(proxy: RestProcess, group: str) -> None:
    status, answer = proxy.v2("POST", f"/consumers/{group}")
    assert status == 200
    name = answer["instance_id"]
    assert name.startswith("rest-consumer-")
    assert answer["base_uri"] == f"{proxy.url}/consumers/{group}/instances/{name}"
    consumer = proxy.consumer(group, name="mine")
    status, again = proxy.v2("POST", f"/consumers/{group}", {"name": "mine"})
    assert (status, again["error_code"]) == (409, 40902)
    assert proxy.v2("DELETE", f"/consumers/{group}/instances/{name}") == (204, None)
    assert proxy.v2("DELETE", f"/consumers/{group}/instances/{name}")[1]["error_code"] == 40403
    consumer.delete()
    proxy.consumer(group, name="mine").delete()


@pytest.mark.parametrize(
    "name",
    ["%20", "%00%ff", "%00", "%09%0a", "%20lead", "trail%20", "nul%00tail", "%ff", "g" * 32_768],
)
def test_names_of_groups_that_librdkafka_would_change(proxy: RestProcess, name: str) -> None:
    status, answer = proxy.v2("POST", f"/consumers/{name}")
    assert (status, answer["error_code"]) == (422, 422)
    assert proxy.ask("GET", "/healthz")[0] == 200


@pytest.mark.parametrize("name", ["g" * 32_767, "a b", "é/%"])
def test_unusual_names_of_groups(proxy: RestProcess, topic: str, name: str) -> None:
    fill(proxy, topic, "a")
    consumer = proxy.consumer(quote(name, safe=""), auto_commit_enable="false")
    consumer.assign((topic, 0))
    consumer.records(1)
    assert consumer.do("POST", "/offsets", status=200) == []
    status, lags = proxy.v3("GET", f"/consumer-groups/{quote(name, safe='')}/lags")
    assert status == 200, lags
    assert lags["data"][0]["consumer_group_id"] == name
    consumer.delete()


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/subscription", None, 422),
        ("POST", "/subscription", {}, 422),
        ("POST", "/subscription", {"topics": "t"}, 400),
        ("POST", "/subscription", {"topic_pattern": "("}, 422),
        ("POST", "/subscription", {"topics": ["nul\0tail"]}, 422),
        ("POST", "/subscription", {"topic_pattern": "nul\0tail"}, 422),
        ("POST", "/assignments", None, 422),
        ("POST", "/assignments", {"partitions": [{"topic": "t\0", "partition": 0}]}, 422),
        ("POST", "/assignments", {"partitions": [{"topic": "t"}]}, 400),
        ("POST", "/assignments", {"partitions": [{"topic": "t", "partition": -1}]}, 400),
        ("POST", "/positions", {"offsets": [{"topic": "t", "partition": 0, "offset": -1}]}, 400),
        ("POST", "/offsets", {"offsets": [{"topic": "t", "partition": 0}]}, 400),
        ("GET", "/offsets", None, 404),
        ("GET", "/records?timeout=x", None, 404),
    ],
)
def test_requests_that_are_none(
    proxy: RestProcess, group: str, method: str, path: str, body: Json, status: int
) -> None:
    consumer = proxy.consumer(group)
    found, answer = consumer.ask(method, path, body)
    assert found == status, answer
    assert set(answer) == {"error_code", "message"}
    consumer.delete()
