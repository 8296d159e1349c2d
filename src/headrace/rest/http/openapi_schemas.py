"""JSON Schemas of the bodies of version 3, for its OpenAPI document. Pure."""

from __future__ import annotations

from typing import Any, Final

Json = Any

STRING: Final[Json] = {"type": "string"}
NUMBER: Final[Json] = {"type": "integer"}
INT: Final[Json] = {"type": "integer", "format": "int32", "minimum": -(2**31), "maximum": 2**31 - 1}
FLAG: Final[Json] = {"type": "boolean"}
ANYTHING: Final[Json] = {}


def ref(name: str) -> Json:
    """A schema by its name."""
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Json) -> Json:
    """A schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def array(items: Json) -> Json:
    """A list."""
    return {"type": "array", "items": items}


def choice(*names: str) -> Json:
    """One of several names."""
    return {"type": "string", "enum": list(names)}


def fields(required: dict[str, Json], optional: dict[str, Json] | None = None) -> Json:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


_RELATED: Final = ref("Relationship")
_TOPIC: Final = {"topic_name": STRING}
_PARTITION: Final = {"topic_name": STRING, "partition_id": NUMBER}
_GROUP: Final = {"consumer_group_id": STRING}
_CONFIG: Final = {
    "name": STRING,
    "value": nullable(STRING),
    "is_default": FLAG,
    "is_read_only": FLAG,
    "is_sensitive": FLAG,
    "source": STRING,
    "synonyms": array(
        fields({"name": STRING, "value": nullable(STRING), "source": STRING}),
    ),
}

# The attributes of every kind of resource, beside `kind`, `metadata` and `cluster_id`.
RESOURCES: Final[dict[str, dict[str, Json]]] = {
    "KafkaCluster": {
        "controller": nullable(_RELATED),
        "acls": _RELATED,
        "brokers": _RELATED,
        "broker_configs": _RELATED,
        "consumer_groups": _RELATED,
        "topics": _RELATED,
        "partition_reassignments": _RELATED,
    },
    "KafkaBroker": {
        "broker_id": NUMBER,
        "host": nullable(STRING),
        "port": nullable(NUMBER),
        "rack": nullable(STRING),
        "configs": _RELATED,
        "partition_replicas": _RELATED,
    },
    "KafkaAcl": {
        "resource_type": STRING,
        "resource_name": STRING,
        "pattern_type": STRING,
        "principal": STRING,
        "host": STRING,
        "operation": STRING,
        "permission": STRING,
    },
    "KafkaTopic": {
        **_TOPIC,
        "is_internal": FLAG,
        "replication_factor": NUMBER,
        "partitions_count": NUMBER,
        "partitions": _RELATED,
        "configs": _RELATED,
        "partition_reassignments": _RELATED,
        "authorized_operations": array(STRING),
    },
    "KafkaPartition": {
        **_PARTITION,
        "leader": nullable(_RELATED),
        "replicas": _RELATED,
        "reassignment": _RELATED,
    },
    "KafkaPartitionWithOffsets": {
        **_PARTITION,
        "earliest_offset": NUMBER,
        "latest_offset": NUMBER,
    },
    "KafkaReplica": {
        **_PARTITION,
        "broker_id": NUMBER,
        "is_leader": FLAG,
        "is_in_sync": FLAG,
        "broker": _RELATED,
    },
    "KafkaReassignment": {
        **_PARTITION,
        "adding_replicas": array(NUMBER),
        "removing_replicas": array(NUMBER),
        "replicas": _RELATED,
    },
    "KafkaTopicConfig": {**_TOPIC, **_CONFIG},
    "KafkaBrokerConfig": {"broker_id": NUMBER, **_CONFIG},
    "KafkaClusterConfig": {"config_type": STRING, **_CONFIG},
    "KafkaConsumerGroup": {
        **_GROUP,
        "is_simple": FLAG,
        "partition_assignor": STRING,
        "state": STRING,
        "type": STRING,
        "is_mixed_consumer_group": FLAG,
        "coordinator": _RELATED,
        "consumers": _RELATED,
        "lag_summary": _RELATED,
    },
    "KafkaConsumer": {
        **_GROUP,
        "consumer_id": STRING,
        "instance_id": nullable(STRING),
        "client_id": STRING,
        "assignments": _RELATED,
    },
    "KafkaConsumerAssignment": {
        **_GROUP,
        "consumer_id": STRING,
        **_PARTITION,
        "partition": _RELATED,
        "lag": _RELATED,
    },
    "KafkaConsumerLag": {
        **_GROUP,
        **_PARTITION,
        "consumer_id": STRING,
        "instance_id": nullable(STRING),
        "client_id": STRING,
        "current_offset": NUMBER,
        "log_end_offset": NUMBER,
        "lag": NUMBER,
    },
    "KafkaConsumerGroupLagSummary": {
        **_GROUP,
        "max_lag_consumer_id": STRING,
        "max_lag_instance_id": nullable(STRING),
        "max_lag_client_id": STRING,
        "max_lag_topic_name": STRING,
        "max_lag_partition_id": NUMBER,
        "max_lag": NUMBER,
        "total_lag": NUMBER,
        "max_lag_consumer": _RELATED,
        "max_lag_partition": _RELATED,
    },
}

_ACL: Final = fields(
    {
        "resource_type": choice(
            *("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN")
        ),
        "resource_name": STRING,
        "pattern_type": choice("LITERAL", "PREFIXED"),
        "principal": STRING,
        "host": STRING,
        "operation": choice(
            *("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
            *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
        ),
        "permission": choice("ALLOW", "DENY"),
    }
)
_CHANGE: Final = fields(
    {"name": STRING},
    {"value": nullable(STRING), "operation": nullable(choice("SET", "DELETE"))},
)
_RECORD: Final = {
    "partition_id": nullable(INT),
    "headers": nullable(
        array(fields({"name": STRING}, {"value": nullable({**STRING, "format": "byte"})}))
    ),
    "key": nullable(ref("ProduceRequestData")),
    "value": nullable(ref("ProduceRequestData")),
    "timestamp": nullable({"anyOf": [{**STRING, "format": "date-time"}, {"type": "number"}]}),
}
_WRITTEN: Final = {
    "cluster_id": STRING,
    "topic_name": STRING,
    "partition_id": NUMBER,
    "offset": NUMBER,
    "timestamp": {**STRING, "format": "date-time"},
    "key": ref("ProduceResponseData"),
    "value": ref("ProduceResponseData"),
}

# The bodies of requests, and of answers that are no resources.
BODIES: Final[dict[str, Json]] = {
    "Error": fields({"error_code": NUMBER, "message": nullable(STRING)}),
    "Relationship": fields({"related": STRING}),
    "CreateTopicRequest": fields(
        {"topic_name": STRING},
        {
            "partitions_count": nullable(INT),
            "replication_factor": nullable(INT),
            "replicas_assignments": nullable(
                {"type": "object", "additionalProperties": array(INT)}
            ),
            "configs": nullable(array(fields({"name": STRING}, {"value": nullable(STRING)}))),
            "validate_only": nullable(FLAG),
        },
    ),
    "PartitionsCountRequest": fields({"partitions_count": INT}),
    "UpdateConfigRequest": fields({}, {"value": nullable(STRING)}),
    "AlterConfigsRequest": fields({"data": array(_CHANGE)}, {"validate_only": nullable(FLAG)}),
    "AlterTopicsConfigsRequest": fields(
        {"data": array(fields({"topic_name": STRING, "configs": array(_CHANGE)}))},
        {"validate_only": nullable(FLAG)},
    ),
    "AlterTopicsConfigsResponse": fields(
        {
            "failures": array(
                fields({"topic_name": STRING, "error_code": NUMBER}, {"message": STRING})
            )
        }
    ),
    "CreateAclRequest": _ACL,
    "CreateAclsRequest": fields({"data": array(_ACL)}),
    "DeleteAclsResponse": fields({"data": array(ref("KafkaAcl"))}),
    "ProduceRequestData": fields(
        {},
        {
            "type": nullable(choice("BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF")),
            "subject": nullable(STRING),
            "subject_name_strategy": nullable(
                choice("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME")
            ),
            "schema_id": nullable(NUMBER),
            "schema_version": nullable(NUMBER),
            "schema": nullable(STRING),
            "data": ANYTHING,
        },
    ),
    "ProduceResponseData": fields(
        {"type": STRING, "size": NUMBER},
        {"subject": STRING, "schema_id": NUMBER, "schema_version": NUMBER},
    ),
    "ProduceRequest": fields({}, _RECORD),
    "ProduceResponse": fields({"error_code": NUMBER}, {"message": STRING, **_WRITTEN}),
    "ProduceBatchRequest": fields(
        {
            "entries": array(
                fields({"id": {**STRING, "pattern": "^[0-9a-zA-Z_-]+$", "maxLength": 80}}, _RECORD)
            )
        }
    ),
    "ProduceBatchResponse": fields(
        {
            "successes": array(fields({"id": STRING}, _WRITTEN)),
            "failures": array(fields({"id": STRING, "error_code": NUMBER}, {"message": STRING})),
        }
    ),
}


def components() -> dict[str, Json]:
    """All schemas by name; a list of resources is named for its kind."""
    found = dict(BODIES)
    for kind, attributes in RESOURCES.items():
        found[kind] = fields(
            {
                "kind": {"const": kind},
                "metadata": fields({"self": STRING, "resource_name": nullable(STRING)}),
                "cluster_id": STRING,
                **attributes,
            }
        )
        found[f"{kind}List"] = fields(
            {
                "kind": {"const": f"{kind}List"},
                "metadata": fields({"self": STRING, "next": nullable(STRING)}),
                "data": array(ref(kind)),
            }
        )
    return found
