"""Version 3 without records: clusters, brokers, topics, partitions, replicas, configs, ACLs; answers, links, codes."""

import uuid

import pytest

from tests.support.headrace_process import HeadraceProcess
from tests.support.rest_process import RestProcess


def test_the_cluster_leads_to_everything_else(proxy: RestProcess, broker: HeadraceProcess) -> None:
    status, answer = proxy.ask("GET", "/v3/clusters")
    assert status == 200
    assert answer["kind"] == "KafkaClusterList"
    assert answer["metadata"] == {"self": f"{proxy.url}/v3/clusters", "next": None}
    [cluster] = answer["data"]
    number = cluster["cluster_id"]
    assert cluster["metadata"] == {
        "self": f"{proxy.url}/v3/clusters/{number}",
        "resource_name": f"crn:///kafka={number}",
    }
    assert proxy.ask("GET", f"/v3/clusters/{number}") == (200, cluster)
    for name in ("controller", "brokers", "broker_configs", "consumer_groups", "topics"):
        related = cluster[name]["related"].removeprefix(proxy.url)
        assert proxy.ask("GET", related)[0] == 200, name
    _, found = proxy.v3("GET", "/brokers")
    [node] = found["data"]
    assert (node["host"], node["port"]) == ("127.0.0.1", broker.port)
    assert proxy.v3("GET", f"/brokers/{node['broker_id']}") == (200, node)


@pytest.mark.parametrize(
    "path",
    [
        "/brokers/99",
        "/brokers/x",
        "/brokers/99/configs",
        "/brokers/99/partition-replicas",
        "/topics/t/partitions/99999999999",
        "/consumer-groups/nobody",
        "/consumer-groups/nobody/consumers",
        "/consumer-groups/nobody/lags",
        "/consumer-groups/nobody/lag-summary",
        "/nothing",
    ],
)
def test_what_is_not_there_is_answered_with_404(proxy: RestProcess, path: str) -> None:
    status, answer = proxy.v3("GET", path)
    assert (status, answer["error_code"]) == (404, 404)
    assert set(answer) == {"error_code", "message"}


def test_another_cluster_is_not_found(proxy: RestProcess) -> None:
    for method, path in (("GET", "/topics"), ("POST", "/topics/t/records")):
        status, answer = proxy.ask(method, f"/v3/clusters/other{path}")
        assert (status, answer["message"]) == (404, "Cluster other cannot be found.")


def test_an_unknown_topic_has_kafkas_message(proxy: RestProcess) -> None:
    for method, path, body in (
        ("GET", "/topics/missing", None),
        ("DELETE", "/topics/missing", None),
        ("PATCH", "/topics/missing", {"partitions_count": 3}),
        ("GET", "/topics/missing/partitions", None),
        ("GET", "/topics/missing/configs", None),
    ):
        status, answer = proxy.v3(method, path, body)
        assert (status, answer["error_code"]) == (404, 40403), answer
        assert answer["message"] == "This server does not host this topic-partition."


def test_the_life_of_a_topic(proxy: RestProcess) -> None:
    name = f"t-{uuid.uuid4()}"
    body = {
        "topic_name": name,
        "partitions_count": 2,
        "configs": [{"name": "cleanup.policy", "value": "compact"}],
    }
    trial = {**body, "validate_only": True}
    status, answer = proxy.v3("POST", "/topics", trial)
    assert (status, answer["partitions_count"]) == (200, 2)
    assert proxy.v3("GET", f"/topics/{name}")[0] == 404
    status, created = proxy.v3("POST", "/topics", body)
    assert status == 201
    status, found = proxy.v3("GET", f"/topics/{name}")
    assert (status, found) == (200, created)
    assert (found["topic_name"], found["is_internal"]) == (name, False)
    assert (found["partitions_count"], found["replication_factor"]) == (2, 1)
    assert found["metadata"]["resource_name"].endswith(f"/topic={name}")
    assert found in proxy.v3("GET", "/topics")[1]["data"]
    status, again = proxy.v3("POST", "/topics", body)
    assert (status, again["error_code"]) == (400, 40002)
    assert "already exists" in again["message"]
    status, grown = proxy.v3("PATCH", f"/topics/{name}", {"partitions_count": 4})
    assert (status, grown["partitions_count"]) == (200, 4)
    status, answer = proxy.v3("PATCH", f"/topics/{name}", {"partitions_count": 3})
    assert (status, answer["error_code"]) == (400, 40002)
    assert proxy.v3("DELETE", f"/topics/{name}") == (204, None)
    assert proxy.v3("GET", f"/topics/{name}")[0] == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (None, 422, 42206),
        ({"topic_name": "a b"}, 422, 42206),
        ({"topic_name": ""}, 422, 42206),
        ({}, 400, 400),
        ({"topic_name": 5}, 400, 400),
        ({"topic_name": "t", "nope": 1}, 422, 422),
        ({"topic_name": "t", "partitions_count": 0}, 400, 40002),
        ({"topic_name": "t", "replication_factor": 9}, 400, 40002),
        ({"topic_name": "t", "configs": [{"name": "nope", "value": "1"}]}, 400, 40002),
    ],
)
def test_a_topic_that_cannot_be(proxy: RestProcess, body: object, status: int, code: int) -> None:
    found, answer = proxy.v3("POST", "/topics", body)
    assert (found, answer["error_code"]) == (status, code), answer


def test_a_topic_with_given_replicas(proxy: RestProcess) -> None:
    [node] = proxy.v3("GET", "/brokers")[1]["data"]
    name, number = f"t-{uuid.uuid4()}", node["broker_id"]
    body = {"topic_name": name, "replicas_assignments": {"0": [number], "1": [number]}}
    status, answer = proxy.v3("POST", "/topics", body)
    assert (status, answer["partitions_count"], answer["replication_factor"]) == (201, 2, 1)
    _, found = proxy.v3("GET", f"/topics/{name}/partitions")
    assert [each["partition_id"] for each in found["data"]] == [0, 1]
    first = found["data"][0]
    assert proxy.v3("GET", f"/topics/{name}/partitions/0") == (200, first)
    assert first["leader"]["related"] == f"{first['metadata']['self']}/replicas/{number}"
    _, replicas = proxy.v3("GET", f"/topics/{name}/partitions/0/replicas")
    [replica] = replicas["data"]
    assert (replica["broker_id"], replica["is_leader"], replica["is_in_sync"]) == (
        number,
        True,
        True,
    )
    assert proxy.v3("GET", f"/topics/{name}/partitions/0/replicas/{number}") == (200, replica)
    assert proxy.v3("GET", f"/topics/{name}/partitions/0/replicas/99")[0] == 404
    _, of_broker = proxy.v3("GET", f"/brokers/{number}/partition-replicas")
    assert replica in of_broker["data"]


def test_offsets_and_reassignments_of_a_partition(proxy: RestProcess, topic: str) -> None:
    proxy.produce(topic, *[{"value": {"type": "STRING", "data": "x"}}] * 3)
    place = f"/topics/{topic}/partitions/0"
    status, found = proxy.v3("GET", f"{place}/offset")
    assert (status, found["earliest_offset"], found["latest_offset"]) == (200, 0, 3)
    status, answer = proxy.v3("GET", f"{place}/offset?offset_type=middle")
    assert (status, answer["error_code"]) == (400, 400)
    status, answer = proxy.v3("GET", f"/topics/{topic}/partitions/5/offset")
    assert (status, answer["error_code"]) == (404, 40402)
    assert proxy.v3("GET", f"{place}/reassignment")[0] == 404
    for path in (
        "/topics/-/partitions/-/reassignment",
        f"/topics/{topic}/partitions/-/reassignment",
    ):
        status, found = proxy.v3("GET", path)
        assert (status, found["kind"], found["data"]) == (200, "KafkaReassignmentList", [])


def test_configs_of_a_topic(proxy: RestProcess, topic: str) -> None:
    place = f"/topics/{topic}/configs"
    _, found = proxy.v3("GET", place)
    names = [each["name"] for each in found["data"]]
    assert names == sorted(names)
    assert "retention.ms" in names
    status, config = proxy.v3("GET", f"{place}/retention.ms")
    assert (status, config["is_default"], config["source"]) == (200, True, "DEFAULT_CONFIG")
    assert proxy.v3("PUT", f"{place}/retention.ms", {"value": "1000"}) == (204, None)
    _, config = proxy.v3("GET", f"{place}/retention.ms")
    assert (config["value"], config["is_default"]) == ("1000", False)
    assert config["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert config["synonyms"][0]["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert proxy.v3("DELETE", f"{place}/retention.ms") == (204, None)
    assert proxy.v3("GET", f"{place}/retention.ms")[1]["is_default"] is True
    changes = [
        {"name": "retention.ms", "value": "2000"},
        {"name": "cleanup.policy", "operation": "DELETE"},
    ]
    trial = {"data": changes, "validate_only": True}
    assert proxy.v3("POST", f"{place}:alter", trial) == (204, None)
    assert proxy.v3("GET", f"{place}/retention.ms")[1]["is_default"] is True
    assert proxy.v3("POST", f"{place}:alter", {"data": changes}) == (204, None)
    assert proxy.v3("GET", f"{place}/retention.ms")[1]["value"] == "2000"
    assert proxy.v3("GET", f"{place}/nope")[0] == 404
    status, answer = proxy.v3("PUT", f"{place}/nope", {"value": "1"})
    assert (status, answer["message"]) == (
        404,
        f"Config nope cannot be found for TOPIC {topic} in cluster {proxy.cluster.rpartition('/')[2]}.",
    )
    status, answer = proxy.v3("PUT", f"{place}/retention.ms", {"value": "x"})
    assert (status, answer["error_code"]) == (400, 40002)
    assert proxy.v3("PUT", f"{place}/retention.ms")[1]["error_code"] == 42206


def test_configs_of_several_topics(proxy: RestProcess, topic: str) -> None:
    _, found = proxy.v3("GET", "/topics/-/configs")
    assert topic in {each["topic_name"] for each in found["data"]}
    change = {"topic_name": topic, "configs": [{"name": "retention.ms", "value": "3000"}]}
    assert proxy.v3("POST", "/topics/-/configs:alter", {"data": [change]}) == (204, None)
    wrong = {"topic_name": topic, "configs": [{"name": "retention.ms", "value": "x"}]}
    status, answer = proxy.v3("POST", "/topics/-/configs:alter", {"data": [wrong]})
    assert status == 207
    [failure] = answer["failures"]
    assert (failure["topic_name"], failure["error_code"]) == (topic, 40002)


def test_configs_of_brokers(proxy: RestProcess) -> None:
    [node] = proxy.v3("GET", "/brokers")[1]["data"]
    place = f"/brokers/{node['broker_id']}/configs"
    for where in (place, "/broker-configs"):
        assert proxy.v3("PUT", f"{where}/log.retention.ms", {"value": "7000"}) == (204, None)
        status, config = proxy.v3("GET", f"{where}/log.retention.ms")
        assert (status, config["value"]) == (200, "7000")
        assert proxy.v3("DELETE", f"{where}/log.retention.ms") == (204, None)
    _, found = proxy.v3("GET", "/brokers/-/configs")
    assert {each["broker_id"] for each in found["data"]} == {node["broker_id"]}
    _, found = proxy.v3("GET", place)
    assert found["kind"] == "KafkaBrokerConfigList"
    change = {"data": [{"name": "log.retention.ms", "value": "8000"}]}
    assert proxy.v3("POST", "/broker-configs:alter", change) == (204, None)
    assert proxy.v3("GET", "/broker-configs")[1]["data"][0]["config_type"] == "BROKER"
    assert proxy.v3("DELETE", "/broker-configs/log.retention.ms") == (204, None)


ACL = {
    "resource_type": "TOPIC",
    "resource_name": "t",
    "pattern_type": "LITERAL",
    "principal": "User:a",
    "host": "*",
    "operation": "READ",
    "permission": "ALLOW",
}


def test_acls_without_an_authorizer(proxy: RestProcess) -> None:
    filled = "&".join(f"{name}={value}" for name, value in ACL.items())
    for method, path, body in (
        ("GET", "/acls", None),
        ("POST", "/acls", ACL),
        ("POST", "/acls:batch", {"data": [ACL]}),
        ("DELETE", f"/acls?{filled}", None),
    ):
        status, answer = proxy.v3(method, path, body)
        assert (status, answer["error_code"]) == (400, 40002), answer
        assert answer["message"].startswith("No Authorizer is configured")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/acls", None),
        ("GET", "/acls?operation=UNKNOWN", None),
        ("GET", "/acls?operation=nope", None),
        ("POST", "/acls", {**ACL, "operation": "ANY"}),
        ("POST", "/acls", {**ACL, "pattern_type": "MATCH"}),
    ],
)
def test_acls_that_are_none(proxy: RestProcess, method: str, path: str, body: object) -> None:
    status, answer = proxy.v3(method, path, body)
    assert (status, answer["error_code"]) == (400, 400)


def test_consumer_groups(proxy: RestProcess, topic: str, group: str) -> None:
    proxy.produce(topic, *[{"value": {"type": "STRING", "data": "x"}}] * 5)
    consumer = proxy.consumer(group)
    consumer.subscribe(topic)
    consumer.records(5)
    consumer.do(
        "POST", "/offsets", {"offsets": [{"topic": topic, "partition": 0, "offset": 1}]}, status=200
    )
    place = f"/consumer-groups/{group}"
    status, found = proxy.v3("GET", place)
    assert (status, found["state"], found["type"], found["is_simple"]) == (
        200,
        "STABLE",
        "CLASSIC",
        False,
    )
    assert found["coordinator"]["related"].startswith(f"{proxy.url}{proxy.cluster}/brokers/")
    assert found in proxy.v3("GET", "/consumer-groups")[1]["data"]
    _, consumers = proxy.v3("GET", f"{place}/consumers")
    [member] = consumers["data"]
    name = member["consumer_id"]
    assert member["client_id"] == "headrace-rest"
    assert proxy.v3("GET", f"{place}/consumers/{name}") == (200, member)
    assert proxy.v3("GET", f"{place}/consumers/nobody")[0] == 404
    _, assignments = proxy.v3("GET", f"{place}/consumers/{name}/assignments")
    [assignment] = assignments["data"]
    assert (assignment["topic_name"], assignment["partition_id"]) == (topic, 0)
    one = f"{place}/consumers/{name}/assignments/{topic}/partitions"
    assert proxy.v3("GET", f"{one}/0") == (200, assignment)
    assert proxy.v3("GET", f"{one}/1")[0] == 404
    _, lags = proxy.v3("GET", f"{place}/lags")
    [lag] = lags["data"]
    assert (lag["current_offset"], lag["log_end_offset"], lag["lag"]) == (2, 5, 3)
    assert lag["consumer_id"] == name
    assert proxy.v3("GET", f"{place}/lags/{topic}/partitions/0") == (200, lag)
    assert proxy.v3("GET", f"{place}/lags/{topic}/partitions/1")[0] == 404
    _, summary = proxy.v3("GET", f"{place}/lag-summary")
    assert (summary["max_lag"], summary["total_lag"]) == (3, 3)
    assert (summary["max_lag_consumer_id"], summary["max_lag_topic_name"]) == (name, topic)
    consumer.delete()
    _, found = proxy.v3("GET", place)
    assert found["state"] == "EMPTY"
    assert proxy.v3("GET", f"{place}/lags")[1]["data"][0]["consumer_id"] == ""


def test_a_group_whose_name_has_a_slash(proxy: RestProcess, topic: str) -> None:
    consumer = proxy.consumer("a%2Fb%25c")
    consumer.assign((topic, 0))
    consumer.do(
        "POST", "/offsets", {"offsets": [{"topic": topic, "partition": 0, "offset": 0}]}, status=200
    )
    status, found = proxy.v3("GET", "/consumer-groups/a%2Fb%25c")
    assert (status, found["consumer_group_id"]) == (200, "a/b%c")
    assert found["metadata"]["self"].endswith("/consumer-groups/a%2Fb%25c")
    consumer.delete()


@pytest.mark.parametrize("kind", ["text/plain", "application/vnd.kafka.v2+json"])
def test_bodies_of_another_media_type(proxy: RestProcess, kind: str) -> None:
    for path in ("/topics", "/topics/t/records", "/topics/t/records:batch"):
        status, answer = proxy.ask(
            "POST", f"{proxy.cluster}{path}", {}, headers={"Content-Type": kind}
        )
        assert (status, answer["error_code"]) == (415, 415)
        assert answer["message"] == "HTTP 415 Unsupported Media Type"


def test_methods_that_are_not_there(proxy: RestProcess) -> None:
    status, headers, body = proxy.ask_raw("PUT", f"{proxy.cluster}/topics")
    assert (status, sorted(headers["allow"].split(", "))) == (405, ["GET", "HEAD", "POST"])
    assert b'"error_code":405' in body


@pytest.mark.parametrize(
    "path",
    [
        "/consumer-groups/{}",
        "/consumer-groups/{}/lags",
        "/consumer-groups/{}/consumers",
        "/topics/{}",
        "/topics/{}/configs",
    ],
)
def test_names_that_do_not_fit_into_kafkas_protocol(proxy: RestProcess, path: str) -> None:
    status, answer = proxy.v3("GET", path.format("n" * 40_000))
    assert (status, answer["error_code"]) == (422, 422)
