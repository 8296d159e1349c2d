"""Version 2 without consumers: topics, partitions, brokers, producing; media types and codes."""

from typing import Any

import pytest

from tests.support.rest_process import V2, RestProcess, base64_text, v2_type

Json = Any


def test_topics_partitions_and_brokers(proxy: RestProcess, topic: str) -> None:
    assert topic in proxy.v2("GET", "/topics")[1]
    status, found = proxy.v2("GET", f"/topics/{topic}")
    assert (status, found["name"]) == (200, topic)
    assert found["configs"]["cleanup.policy"] == "delete"
    [broker] = proxy.v2("GET", "/brokers")[1]["brokers"]
    partition = {
        "partition": 0,
        "leader": broker,
        "replicas": [{"broker": broker, "leader": True, "in_sync": True}],
    }
    assert found["partitions"] == [partition]
    assert proxy.v2("GET", f"/topics/{topic}/partitions") == (200, [partition])
    assert proxy.v2("GET", f"/topics/{topic}/partitions/0") == (200, partition)
    offsets = {"beginning_offset": 0, "end_offset": 0}
    assert proxy.v2("GET", f"/topics/{topic}/partitions/0/offsets") == (200, offsets)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/topics/missing", 40403),
        ("/topics/missing/partitions", 40403),
        ("/topics/missing/partitions/0", 40403),
        ("/topics/{topic}/partitions/9", 40402),
        ("/topics/{topic}/partitions/9/offsets", 40402),
        ("/topics/{topic}/partitions/x", 404),
        ("/consumers/g/instances/i/records", 40403),
        ("/nothing", 404),
    ],
)
def test_what_is_not_there(proxy: RestProcess, topic: str, path: str, code: int) -> None:
    status, answer = proxy.v2("GET", path.format(topic=topic))
    assert (status, answer["error_code"]) == (404, code), answer


def test_the_media_type_is_the_one_that_the_client_accepts(proxy: RestProcess) -> None:
    for accept, expected in (
        ("*/*", V2),
        (V2, V2),
        ("application/json", "application/json"),
        (f"application/xml, {V2}; q=0.5", V2),
    ):
        status, headers, _ = proxy.ask_raw("GET", "/topics", headers={"Accept": accept})
        assert (status, headers["content-type"]) == (200, expected)
    status, answer = proxy.v2("GET", "/topics", Accept="text/html")
    assert (status, answer) == (406, {"error_code": 406, "message": "HTTP 406 Not Acceptable"})
    assert proxy.v2("GET", "/") == (200, {})


def test_produce_binary_and_json(proxy: RestProcess, topic: str) -> None:
    body: Json = {
        "records": [
            {"key": base64_text(b"k"), "value": base64_text(b"v")},
            {"value": None},
            {"value": base64_text(b"w"), "partition": 0},
        ]
    }
    status, answer = proxy.produce_v2(topic, "binary", body)
    assert (status, answer) == (
        200,
        {
            "offsets": [
                {"partition": 0, "offset": offset, "error_code": None, "error": None}
                for offset in range(3)
            ],
            "key_schema_id": None,
            "value_schema_id": None,
        },
    )
    body = {"records": [{"key": {"a": 1}, "value": [1, 2]}]}
    status, answer = proxy.ask(
        "POST",
        f"/topics/{topic}/partitions/0",
        body,
        headers={"Content-Type": v2_type("json"), "Accept": V2},
    )
    assert (status, answer["offsets"][0]["offset"]) == (200, 3)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"records": []}, 422, 422),
        ({}, 422, 422),
        (None, 422, 422),
        ({"records": [{"value": "*"}]}, 400, 400),
        ({"records": [{"value": 5}]}, 400, 400),
        ({"records": 5}, 400, 400),
        ({"records": [{"nope": ""}]}, 422, 422),
        ({"records": [{"value": "", "partition": 9}]}, 404, 40402),
        ({"records": [{"value": "", "partition": -1}]}, 404, 40402),
    ],
)
def test_bodies_that_cannot_be_produced(
    proxy: RestProcess, topic: str, body: Json, status: int, code: int
) -> None:
    found, answer = proxy.produce_v2(topic, "binary", body)
    assert (found, answer["error_code"]) == (status, code), answer


def test_produce_to_what_is_not_there(proxy: RestProcess, topic: str) -> None:
    body = {"records": [{"value": ""}]}
    status, answer = proxy.produce_v2("missing", "binary", body)
    assert (status, answer) == (404, {"error_code": 40401, "message": "Topic not found."})
    status, answer = proxy.produce_v2(f"{topic}/partitions/9", "binary", body)
    assert (status, answer["error_code"]) == (404, 40402)


@pytest.mark.parametrize("kind", [V2, "application/json", "text/plain", ""])
def test_produce_needs_a_format(proxy: RestProcess, topic: str, kind: str) -> None:
    status, answer = proxy.ask(
        "POST", f"/topics/{topic}", {"records": []}, headers={"Content-Type": kind}
    )
    assert (status, answer["error_code"]) == (415, 415)


def test_a_record_that_kafka_refuses_is_told_beside_the_others(
    proxy: RestProcess, topic: str
) -> None:
    body = {"records": [{"value": "x"}, {"value": "y" * 2_000_000}]}
    status, answer = proxy.produce_v2(topic, "json", body)
    assert status == 200
    good, bad = answer["offsets"]
    assert (good["offset"], good["error_code"]) == (0, None)
    assert (bad["offset"], bad["error_code"]) == (None, 50002)
    assert "too large" in bad["error"].lower()
