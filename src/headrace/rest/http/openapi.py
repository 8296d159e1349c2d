"""The OpenAPI document of version 3, which the proxy serves at `/v3/openapi.json`. Pure."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, NamedTuple

from headrace import __version__
from headrace.rest.http.openapi_schemas import FLAG, INT, STRING, components, ref

Json = Any

_JSON: Final = "application/json"
_CLUSTER: Final = "/clusters/{cluster}"
_TOPIC: Final = _CLUSTER + "/topics/{topic}"
_PARTITION: Final = _TOPIC + "/partitions/{partition}"
_BROKER: Final = _CLUSTER + "/brokers/{broker}"
_GROUP: Final = _CLUSTER + "/consumer-groups/{group}"
_CONSUMER: Final = _GROUP + "/consumers/{consumer}"
_IN_PARTITION: Final = "/{topic}/partitions/{partition}"
_NUMBERS: Final = ("broker", "partition")
_ACL_FILTER: Final = dict.fromkeys(
    (
        *("resource_type", "resource_name", "pattern_type", "principal", "host"),
        *("operation", "permission"),
    ),
    STRING,
)
# What any request may be answered with.
_ERRORS: Final = {
    "400": "The request is not valid, or Kafka refused it",
    "403": "Kafka does not allow it",
    "404": "There is no such thing",
    "405": "There is no such method here",
    "408": "The body did not come in time",
    "413": "The body, or a record, is too large",
    "415": "The body is of another media type",
    "422": "The body has the wrong form",
    "429": "Kafka's quota is used up",
    "500": "Kafka failed or did not answer",
    "503": "The proxy has no room for the request now",
}


class _Operation(NamedTuple):
    method: str
    path: str
    summary: str
    answers: dict[str, str | None]  # names of schemas by status; None: no body
    body: str | None = None
    query: dict[str, Json] = {}


def _get(path: str, answer: str, summary: str, **query: Json) -> _Operation:
    return _Operation("get", path, summary, {"200": answer}, None, query)


_OPERATIONS: Final = (
    _get("/clusters", "KafkaClusterList", "List the clusters: the one that the proxy serves"),
    _get(_CLUSTER, "KafkaCluster", "A cluster"),
    _get(f"{_CLUSTER}/brokers", "KafkaBrokerList", "List brokers"),
    _get(_BROKER, "KafkaBroker", "A broker"),
    _get(f"{_BROKER}/partition-replicas", "KafkaReplicaList", "List the replicas of a broker"),
    _Operation("get", f"{_CLUSTER}/acls", "List ACLs", {"200": "KafkaAclList"}, None, _ACL_FILTER),
    _Operation("post", f"{_CLUSTER}/acls", "Add an ACL", {"201": None}, "CreateAclRequest"),
    _Operation("post", f"{_CLUSTER}/acls:batch", "Add ACLs", {"201": None}, "CreateAclsRequest"),
    _Operation(
        "delete",
        f"{_CLUSTER}/acls",
        "Delete ACLs",
        {"200": "DeleteAclsResponse"},
        None,
        _ACL_FILTER,
    ),
    _get(f"{_CLUSTER}/topics", "KafkaTopicList", "List topics", include_authorized_operations=FLAG),
    _Operation(
        "post",
        f"{_CLUSTER}/topics",
        "Create a topic",
        {"201": "KafkaTopic", "200": "KafkaTopic"},
        "CreateTopicRequest",
    ),
    _get(_TOPIC, "KafkaTopic", "A topic", include_authorized_operations=FLAG),
    _Operation(
        "patch",
        _TOPIC,
        "Give a topic more partitions",
        {"200": "KafkaTopic"},
        "PartitionsCountRequest",
    ),
    _Operation("delete", _TOPIC, "Delete a topic", {"204": None}),
    _get(f"{_TOPIC}/partitions", "KafkaPartitionList", "List partitions"),
    _get(_PARTITION, "KafkaPartition", "A partition"),
    _get(
        f"{_PARTITION}/offset",
        "KafkaPartitionWithOffsets",
        "The first and the last offset of a partition",
        offset_type=STRING,
    ),
    _get(f"{_PARTITION}/replicas", "KafkaReplicaList", "List replicas"),
    _get(_PARTITION + "/replicas/{broker}", "KafkaReplica", "A replica"),
    _get(f"{_PARTITION}/reassignment", "KafkaReassignment", "The reassignment of a partition"),
    _get(
        f"{_TOPIC}/partitions/-/reassignment",
        "KafkaReassignmentList",
        "List the reassignments of a topic",
    ),
    _get(
        f"{_CLUSTER}/topics/-/partitions/-/reassignment",
        "KafkaReassignmentList",
        "List all reassignments",
    ),
    _get(f"{_CLUSTER}/topics/-/configs", "KafkaTopicConfigList", "List configs of all topics"),
    _Operation(
        "post",
        f"{_CLUSTER}/topics/-/configs:alter",
        "Alter configs of several topics",
        {"204": None, "207": "AlterTopicsConfigsResponse"},
        "AlterTopicsConfigsRequest",
    ),
    _get(f"{_CLUSTER}/brokers/-/configs", "KafkaBrokerConfigList", "List configs of all brokers"),
    *(
        operation
        for place, kind, whose in (
            (f"{_CLUSTER}/broker-configs", "KafkaClusterConfig", "all brokers by default"),
            (f"{_BROKER}/configs", "KafkaBrokerConfig", "a broker"),
            (f"{_TOPIC}/configs", "KafkaTopicConfig", "a topic"),
        )
        for operation in (
            _get(place, f"{kind}List", f"List configs of {whose}"),
            _Operation(
                "post",
                f"{place}:alter",
                f"Alter configs of {whose}",
                {"204": None},
                "AlterConfigsRequest",
            ),
            _get(place + "/{name}", kind, f"A config of {whose}"),
            _Operation(
                "put",
                place + "/{name}",
                f"Set a config of {whose}",
                {"204": None},
                "UpdateConfigRequest",
            ),
            _Operation("delete", place + "/{name}", f"Reset a config of {whose}", {"204": None}),
        )
    ),
    _get(f"{_CLUSTER}/consumer-groups", "KafkaConsumerGroupList", "List consumer groups"),
    _get(_GROUP, "KafkaConsumerGroup", "A consumer group"),
    _get(f"{_GROUP}/lag-summary", "KafkaConsumerGroupLagSummary", "The greatest and the total lag"),
    _get(f"{_GROUP}/lags", "KafkaConsumerLagList", "List lags by partition"),
    _get(f"{_GROUP}/lags{_IN_PARTITION}", "KafkaConsumerLag", "The lag in a partition"),
    _get(f"{_GROUP}/consumers", "KafkaConsumerList", "List consumers of a group"),
    _get(_CONSUMER, "KafkaConsumer", "A consumer"),
    _get(f"{_CONSUMER}/assignments", "KafkaConsumerAssignmentList", "List assigned partitions"),
    _get(
        f"{_CONSUMER}/assignments{_IN_PARTITION}",
        "KafkaConsumerAssignment",
        "An assigned partition",
    ),
    _Operation(
        "post",
        f"{_TOPIC}/records",
        "Produce records: a stream of JSON objects, each answered by one",
        {"200": "ProduceResponse"},
        "ProduceRequest",
    ),
    _Operation(
        "post",
        f"{_TOPIC}/records:batch",
        "Produce a few records and get one answer",
        {"207": "ProduceBatchResponse"},
        "ProduceBatchRequest",
    ),
)


@cache
def document() -> Json:
    """The document."""
    paths: dict[str, Json] = {}
    for operation in _OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Headrace REST proxy, version 3", "version": __version__},
        "servers": [{"url": "/v3"}],
        "paths": paths,
        "components": {"schemas": components()},
    }


def _described(operation: _Operation) -> Json:
    parameters = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": INT if name in _NUMBERS else {**STRING, "minLength": 1},
        }
        for name in re.findall(r"\{(\w+)\}", operation.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in operation.query.items()
    ]
    answers: dict[str, Json] = {
        status: {"description": text, "content": {_JSON: {"schema": ref("Error")}}}
        for status, text in _ERRORS.items()
    }
    for status, name in operation.answers.items():
        answers[status] = {"description": "Done"}
        if name is not None:
            answers[status]["content"] = {_JSON: {"schema": ref(name)}}
    found: dict[str, Json] = {
        "summary": operation.summary,
        "parameters": parameters,
        "responses": answers,
    }
    if operation.body is not None:
        found["requestBody"] = {
            "required": True,
            "content": {_JSON: {"schema": ref(operation.body)}},
        }
    return found
