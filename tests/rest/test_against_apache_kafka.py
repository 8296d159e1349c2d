"""The proxy works over any Kafka: the same requests to one over Apache Kafka and one over Headrace are answered alike."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.rest.test_v3_admin import ACL
from tests.rest.test_v3_records import text
from tests.support.apache_kafka import ApacheKafka
from tests.support.rest_process import PATIENCE_S, RestProcess

Json = Any


@pytest.fixture(scope="module")
def over_kafka(
    apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RestProcess]:
    brokers = f"127.0.0.1:{apache_kafka.port}"
    with RestProcess(tmp_path_factory.mktemp("rest-kafka"), brokers) as proxy:
        yield proxy


def outline(answer: Json) -> Json:
    """An answer without what differs by nature: names, addresses, times."""
    if isinstance(answer, dict):
        hidden = {"metadata", "cluster_id", "related", "timestamp", "host", "port", "message"}
        return {name: outline(value) for name, value in answer.items() if name not in hidden}
    if isinstance(answer, list | tuple):
        return [outline(each) for each in answer]
    return answer


def seen(proxy: RestProcess, path: str, **expected: Json) -> tuple[int, Json]:
    """An answer once it shows a change: Kafka's brokers learn of changes after its controller has confirmed them."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = proxy.v3("GET", path)
        shown = {name: found[1].get(name) for name in expected}
        if (found[0] == 200 and shown == expected) or time.monotonic() > deadline:
            return found


def topics(proxy: RestProcess) -> list[Json]:
    body: Json = {"topic_name": "alike", "partitions_count": 2}
    return [
        proxy.v3("POST", "/topics", {**body, "validate_only": True}),
        proxy.v3("POST", "/topics", body),
        seen(proxy, "/topics/alike"),
        proxy.v3("POST", "/topics", body),
        proxy.v3("POST", "/topics", {"topic_name": "x", "replication_factor": 5}),
        proxy.v3("POST", "/topics", {"topic_name": "x", "configs": [{"name": "nope"}]}),
        proxy.v3("PATCH", "/topics/alike", {"partitions_count": 3}),
        seen(proxy, "/topics/alike", partitions_count=3),
        proxy.v3("PATCH", "/topics/alike", {"partitions_count": 2}),
        proxy.v3("GET", "/topics/missing"),
        proxy.v3("DELETE", "/topics/missing"),
        proxy.v3("GET", "/topics/alike/partitions/2"),
        proxy.v3("GET", "/topics/alike/partitions/2/replicas"),
        proxy.v3("GET", "/topics/alike/partitions/9"),
        proxy.v3("GET", "/topics/-/partitions/-/reassignment"),
        proxy.v3("GET", "/topics/alike/partitions/0/offset"),
    ]


def configs(proxy: RestProcess) -> list[Json]:
    place = "/topics/configured/configs"
    proxy.create_topic("configured")
    seen(proxy, "/topics/configured")
    return [
        proxy.v3("PUT", f"{place}/retention.ms", {"value": "1000"}),
        seen(proxy, f"{place}/retention.ms", value="1000"),
        proxy.v3("PUT", f"{place}/retention.ms", {"value": "x"}),
        proxy.v3("PUT", f"{place}/nope", {"value": "x"}),
        proxy.v3("DELETE", f"{place}/retention.ms"),
        proxy.v3("POST", f"{place}:alter", {"data": [{"name": "cleanup.policy", "value": "x"}]}),
        proxy.v3("PUT", "/broker-configs/log.retention.ms", {"value": "7000"}),
        seen(proxy, "/broker-configs/log.retention.ms", value="7000"),
        proxy.v3("DELETE", "/broker-configs/log.retention.ms"),
    ]


def access(proxy: RestProcess) -> list[Json]:
    return [
        proxy.v3("GET", "/acls"),
        proxy.v3("POST", "/acls", ACL),
        proxy.v3("DELETE", "/acls?" + "&".join(f"{name}={value}" for name, value in ACL.items())),
    ]


def records(proxy: RestProcess) -> list[Json]:
    proxy.create_topic("written", 2)
    seen(proxy, "/topics/written")
    keyed = [{"key": {"type": "STRING", "data": f"k{n}"}, **text("x")} for n in range(5)]
    return [
        proxy.produce("written", *keyed, text("y" * 2_000_000), {"partition_id": 7}),
        proxy.produce_v2("written", "json", {"records": [{"value": 1, "partition": 1}]}),
        proxy.v2("GET", "/topics/written/partitions/1/offsets"),
    ]


def groups(proxy: RestProcess) -> list[Json]:
    proxy.create_topic("read")
    seen(proxy, "/topics/read")
    proxy.produce("read", *[text("x")] * 4)
    consumer = proxy.consumer("readers", format="binary")
    consumer.subscribe("read")
    found: list[Json] = [consumer.records(4)]
    offset = {"topic": "read", "partition": 0, "offset": 1}
    place = {"partitions": [{"topic": "read", "partition": 0}]}
    found += [
        consumer.ask("POST", "/offsets", {"offsets": [offset]}),
        consumer.ask("GET", "/offsets", place),
        consumer.ask("POST", "/positions/beginning", place),
        consumer.records(4),
        consumer.ask("GET", "/assignments"),
    ]
    group = "/consumer-groups/readers"
    described = [proxy.v3("GET", f"{group}{path}") for path in ("", "/lags", "/lag-summary")]
    for _, answer in described:
        for each in (answer, *answer.get("data", ())):
            for name in ("consumer_id", "max_lag_consumer_id"):
                each.pop(name, None)
    consumer.delete()
    return [*found, *described, proxy.v3("GET", "/consumer-groups/nobody")]


@pytest.mark.parametrize("story", [topics, configs, access, records, groups])
def test_kafka_and_headrace_are_alike(
    proxy: RestProcess, over_kafka: RestProcess, story: Callable[[RestProcess], list[Json]]
) -> None:
    ours, theirs = story(proxy), story(over_kafka)
    for mine, other in zip(ours, theirs, strict=True):
        assert outline(mine) == outline(other)
