"""Confluent's names of the proxy's endpoints, as its metrics have them, by method and route. Pure data.

Version 2 names producing and reading by the format of the records, which no route tells: those have no name here.
"""

from __future__ import annotations

from typing import Final

_CLUSTER: Final = "/v3/clusters/{cluster}"
_TOPIC: Final = _CLUSTER + "/topics/{topic}"
_PARTITION: Final = _TOPIC + "/partitions/{partition}"
_BROKER: Final = _CLUSTER + "/brokers/{broker}"
_GROUP: Final = _CLUSTER + "/consumer-groups/{group}"
_CONSUMER: Final = _GROUP + "/consumers/{consumer}"
_IN_PARTITION: Final = "/{topic}/partitions/{partition}"
_INSTANCE: Final = "/consumers/{group}/instances/{instance}"


def _configs(place: str, name: str) -> dict[tuple[str, str], str]:
    """The configs of topics, of a broker, or of all brokers."""
    return {
        ("POST", f"{place}:alter"): f"{name}.alter",
        ("GET", place): f"{name}.list",
        ("GET", place + "/{name}"): f"{name}.get",
        ("PUT", place + "/{name}"): f"{name}.update",
        ("DELETE", place + "/{name}"): f"{name}.delete",
    }


ENDPOINT_NAMES: Final = {
    ("POST", f"{_TOPIC}/records"): "v3.produce.produce-to-topic",
    ("POST", f"{_TOPIC}/records:batch"): "v3.produce.produce-to-topic",
    ("GET", "/v3/clusters"): "v3.clusters.list",
    ("GET", _CLUSTER): "v3.clusters.get",
    ("GET", f"{_CLUSTER}/brokers"): "v3.brokers.list",
    ("GET", _BROKER): "v3.brokers.get",
    ("GET", f"{_CLUSTER}/acls"): "v3.acls.list",
    ("POST", f"{_CLUSTER}/acls"): "v3.acls.create",
    ("DELETE", f"{_CLUSTER}/acls"): "v3.acls.delete",
    ("POST", f"{_CLUSTER}/acls:batch"): "v3.acls.batch-create",
    ("GET", f"{_CLUSTER}/topics/-/configs"): "v3.topics.configs.list",
    ("POST", f"{_CLUSTER}/topics/-/configs:alter"): "v3.topics.configs.alter-multi",
    ("GET", f"{_CLUSTER}/brokers/-/configs"): "v3.brokers.configs.list",
    **_configs(f"{_CLUSTER}/broker-configs", "v3.clusters.configs"),
    **_configs(f"{_BROKER}/configs", "v3.brokers.configs"),
    **_configs(f"{_TOPIC}/configs", "v3.topics.configs"),
    ("GET", f"{_CLUSTER}/topics"): "v3.topics.list",
    ("POST", f"{_CLUSTER}/topics"): "v3.topics.create",
    ("GET", _TOPIC): "v3.topics.get",
    ("PATCH", _TOPIC): "v3.topics.partitions",
    ("DELETE", _TOPIC): "v3.topics.delete",
    ("GET", f"{_CLUSTER}/topics/-/partitions/-/reassignment"): "v3.topics-partitions-reassignment.list",
    ("GET", f"{_TOPIC}/partitions"): "v3.partitions.list",
    ("GET", f"{_TOPIC}/partitions/-/reassignment"): "v3.topics.partitions-reassignment.list",
    ("GET", _PARTITION): "v3.partitions.get",
    ("GET", f"{_PARTITION}/offset"): "v3.partitions.list.offsets",
    ("GET", f"{_PARTITION}/reassignment"): "v3.topics.partitions.reassignment.get",
    ("GET", f"{_PARTITION}/replicas"): "v3.replicas.list",
    ("GET", _PARTITION + "/replicas/{broker}"): "v3.replicas.get",
    ("GET", f"{_BROKER}/partition-replicas"): "v3.brokers.partition-replicas.list",
    ("GET", f"{_CLUSTER}/consumer-groups"): "v3.consumer-groups.list",
    ("GET", _GROUP): "v3.consumer-groups.get",
    ("GET", f"{_GROUP}/lag-summary"): "v3.consumer-group-lag-summary.get",
    ("GET", f"{_GROUP}/lags"): "v3.consumer-lags.list",
    ("GET", f"{_GROUP}/lags{_IN_PARTITION}"): "v3.consumer-lags.get",
    ("GET", f"{_GROUP}/consumers"): "v3.consumers.list",
    ("GET", _CONSUMER): "v3.consumers.get",
    ("GET", f"{_CONSUMER}/assignments"): "v3.consumer-assignments.list",
    ("GET", f"{_CONSUMER}/assignments{_IN_PARTITION}"): "v3.consumer-assignments.get",
    ("GET", "/topics"): "topics.list+v2",
    ("GET", "/topics/{topic}"): "topic.get+v2",
    ("GET", "/topics/{topic}/partitions"): "partitions.list+v2",
    ("GET", "/topics/{topic}/partitions/{partition}"): "partition.get+v2",
    ("GET", "/brokers"): "brokers.list+v2",
    ("POST", "/consumers/{group}"): "consumer.create+v2",
    ("DELETE", _INSTANCE): "consumer.delete+v2",
    ("POST", f"{_INSTANCE}/subscription"): "consumer.subscribe+v2",
    ("GET", f"{_INSTANCE}/subscription"): "consumer.subscription+v2",
    ("DELETE", f"{_INSTANCE}/subscription"): "consumer.unsubscribe+v2",
    ("POST", f"{_INSTANCE}/assignments"): "consumer.assign+v2",
    ("GET", f"{_INSTANCE}/assignments"): "consumer.assignment+v2",
    ("POST", f"{_INSTANCE}/positions"): "consumer.seek-to-offset+v2",
    ("POST", f"{_INSTANCE}/positions/beginning"): "consumer.seek-to-beginning+v2",
    ("POST", f"{_INSTANCE}/positions/end"): "consumer.seek-to-end+v2",
    ("POST", f"{_INSTANCE}/offsets"): "consumer.commit-offsets+v2",
    ("GET", f"{_INSTANCE}/offsets"): "consumer.committed-offsets+v2",
    ("GET", "/"): "root.get+v2",
    ("POST", "/"): "root.post+v2",
}  # fmt: skip
